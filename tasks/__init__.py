"""The steps of a study: the only code that touches disk, clock, device, database or Prefect.

Step: a Prefect task of the flow, such as `train` or `index_results`, which makes what the store lacks.
Stage: a kind of artifact, such as "corpus", "training" or "behaviour", and the code that makes it.
Analysis: a stage that measures one trained model.
Artifact: a folder that a stage made, committed to the store and never changed.
Spec: what decides an artifact: stage, code version, config, inputs and numerics; its hash is the artifact's key.
"""
