"""Rotary positions in configs, as older and newer versions of transformers write them."""

from headstream.tasks.importing.settings import Settings

_SCALED = "scaled rotary positions"


def rotary_settings(settings: Settings) -> Settings:
    """The settings of rotary positions: those in `rope_scaling`, or where there are none, in `rope_parameters`."""
    older = settings.section("rope_scaling")
    return settings.section("rope_parameters") if older.is_empty else older


def rotary_base_of(settings: Settings, name: str) -> float:
    """The base of rotary angles: `rope_theta` among their settings, else the setting of that name, else 10,000.

    Raises:
        UserError: the angles are scaled in some way, or differ by layer.
    """
    rotary, older = rotary_settings(settings), settings.number(name, 10_000)
    for kind in ("rope_type", "type"):
        rotary.must_be(kind, ("default",), _SCALED)
    for layers in ("full_attention", "sliding_attention"):
        rotary.must_be(layers, (None,), "rotary positions that differ by layer")
    return rotary.number("rope_theta", older)


def rotary_fraction_of(settings: Settings, name: str, default: float) -> float:
    """The fraction of each head's dimensions that are rotated."""
    older = settings.number(name, default)
    return rotary_settings(settings).number("partial_rotary_factor", older)
