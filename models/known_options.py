"""Options of an architecture that another forward pass knows: the page's, or the definition of a format.

Each declares the options that it knows, and refuses one that is added to `Architecture` until it knows that, too.
"""

from collections.abc import Collection, Mapping

from headstream.models.architecture import Architecture

KnownOptions = Mapping[str, Collection[object] | None]  # values by field; None: any value


def unknown_options(architecture: Architecture, known: KnownOptions) -> list[str]:
    """Options of an architecture that aren't known, as `field = value`; undeclared fields must have their defaults."""
    unknown = []
    for name, field in type(architecture).model_fields.items():
        value, values = getattr(architecture, name), known.get(name, (field.default,))
        if values is not None and value not in values:
            unknown.append(f"{name} = {value!r}")
    return unknown
