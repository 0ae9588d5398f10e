"""The steps of models from elsewhere: their tokens, their import, and what measures them."""

from collections.abc import Iterator, Mapping

from headstream.models.flops import forward_flops
from headstream.tasks.graph import artifact_specs
from headstream.tasks.graph.model_steps import BYTES_PER_PARAMETER, analysis_steps
from headstream.tasks.graph.step import Inputs, Step, StepName
from headstream.tasks.importing.imported_cell import ImportedCell, read_imported
from headstream.tasks.storage.artifact import Spec
from headstream.tasks.study.cells import matrix_entries
from headstream.tasks.study.schema import Study
from headstream.tasks.study.stage import Size
from headstream.tasks.study.stages import IMPORT, TOKENS


def steps_of_imported_models(study: Study, shared: Mapping[str, StepName], text: Size) -> Iterator[Step]:
    """The steps of a study's [[models]], model by model.

    Raises:
        UserError: one can't be read; says which, why and what to do.
    """
    for cell in read_imported(study.models):
        tokens = _tokens_step(cell, shared["corpus"], text)
        imported = _import_step(cell, tokens.name, shared["corpus"])
        yield from (tokens, imported)
        yield from analysis_steps(study, imported, shared)


def _tokens_step(cell: ImportedCell, corpus: StepName, text: Size) -> Step:
    def arguments(spec: Spec, inputs: Inputs) -> dict[str, object]:
        given = {"tokenizer": cell.tokenizer.json, "bos": cell.bos, "vocabulary": cell.d_vocab}
        return {**given, "corpus_folder": inputs["corpus"].folder}

    return Step(
        TOKENS,
        cell.label,
        inputs={"corpus": corpus},
        spec_of=lambda inputs: artifact_specs.given_tokens_spec(cell, inputs["corpus"]),
        arguments_of=arguments,
        work="headstream.tasks.text.token_writing:write_given_tokens",
        title=f"tokenise for {cell.label}",
        size=text,
        bytes=int(text.bytes),
    )


def _import_step(cell: ImportedCell, tokens: StepName, corpus: StepName) -> Step:
    n_checkpoints = len(cell.checkpoints)
    checkpoint_bytes = BYTES_PER_PARAMETER * matrix_entries(cell.architecture, cell.d_vocab)

    def arguments(spec: Spec, inputs: Inputs) -> dict[str, object]:
        return {
            "cell": cell,
            "tokens_folder": inputs["tokens"].folder,
            "corpus_folder": inputs["corpus"].folder,
            "model_id": artifact_specs.cell_id(cell, spec),
            "corpus_id": inputs["tokens"].manifest.facts["corpus_id"],
        }

    return Step(
        IMPORT,
        cell.label,
        inputs={"tokens": tokens, "corpus": corpus},
        spec_of=lambda inputs: artifact_specs.import_spec(cell, inputs["tokens"]),
        arguments_of=arguments,
        cell_id_of=lambda spec: artifact_specs.cell_id(cell, spec),
        size=Size(
            architecture=cell.architecture,
            pass_flops=forward_flops(cell.architecture, cell.d_vocab, cell.architecture.n_ctx),
            n_ctx=cell.architecture.n_ctx,
            n_checkpoints=n_checkpoints,
            checkpoint_bytes=checkpoint_bytes,
            bytes=n_checkpoints * checkpoint_bytes,
            n_layers=cell.architecture.n_layers,
            n_heads=sum(cell.architecture.heads_per_layer),
        ),
        bytes=n_checkpoints * checkpoint_bytes,
    )
