"""Rotary positions in configs, as older and newer versions of transformers write them."""

from headstream.tasks.importing.settings import Settings

_SCALED = "scaled rotary positions"


def rotary_base_of(settings: Settings, name: str) -> float:
    """The base of rotary angles: `rope_parameters.rope_theta`, else the setting of that name, else 10,000.

    Raises:
        UserError: the angles are scaled in some way, or differ by layer.
    """
    if "rope_scaling" in settings:
        scaling = settings.section("rope_scaling")
        for kind in ("rope_type", "type"):
            scaling.must_be(kind, ("default",), _SCALED)
    newer = settings.section("rope_parameters")
    newer.must_be("rope_type", ("default",), _SCALED)
    for kind in ("full_attention", "sliding_attention"):
        newer.must_be(kind, (None,), "rotary positions that differ by layer")
    older = settings.number(name, 10_000)
    return newer.number("rope_theta", older)


def rotary_fraction_of(settings: Settings, name: str, default: float) -> float:
    """The fraction of each head's dimensions that are rotated."""
    older = settings.number(name, default)
    return settings.section("rope_parameters").number("partial_rotary_factor", older)
