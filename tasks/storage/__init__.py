"""The artifact store: artifacts, their manifests, the code version in their keys, and the provenance of results."""
