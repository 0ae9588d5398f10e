"""Options of an architecture that another forward pass knows: a page's, or the definition of a format.

Each declares what it knows, and refuses an option that is added to `Architecture` until it does.
"""

from collections.abc import Collection, Mapping

from headstream.models.architecture import Architecture

KnownOptions = Mapping[str, Collection[object] | None]  # values by field; None: whatever it may be


def unknown_options(architecture: Architecture, known: KnownOptions) -> list[str]:
    """What of an architecture isn't known, as `field = value`; of a field that isn't declared its default is known."""
    unknown = []
    for name, field in type(architecture).model_fields.items():
        value, values = getattr(architecture, name), known.get(name, (field.default,))
        if values is not None and value not in values:
            unknown.append(f"{name} = {value!r}")
    return unknown
