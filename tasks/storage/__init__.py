"""The artifact store: artifacts and their manifests, the code version in their keys, and the code behind a result."""
