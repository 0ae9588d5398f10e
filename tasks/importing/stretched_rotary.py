"""Rotary positions whose wavelengths are stretched for longer contexts, as configs of transformers ask for them."""

from typing import Any

from headstream.models.architecture import Architecture
from headstream.tasks.importing.rotary_settings import rotary_base_of, rotary_settings
from headstream.tasks.importing.settings import Settings

_LINEAR, _LLAMA3 = _KINDS = ("linear", "llama3")


def rotary_fields(settings: Settings, fraction: float | None = None) -> dict[str, Any]:
    """Fields of an architecture for rotary positions, stretched or not.

    `fraction` is the part of each head that they turn by a config that doesn't say it, in families where it may.

    Raises:
        UserError: they are changed in another way, or their change lacks a number.
    """
    scaling = rotary_settings(settings)
    named = "rope_type" if "rope_type" in scaling else "type"
    kind = next((kind for kind in _KINDS if scaling.has(named, kind)), None)
    fields: dict[str, Any] = {}
    if fraction is None:
        for said in (settings, scaling):
            said.must_be("partial_rotary_factor", (1,), "rotary positions on part of a head in this family")
    else:
        beside = settings.number("partial_rotary_factor", fraction)
        fields["rotary_fraction"] = scaling.number("partial_rotary_factor", beside)
    if kind is None:
        return fields | {"rotary_base": rotary_base_of(settings, "rope_theta")}
    scaling.ignore("rope_type", "type")
    fields["rotary_base"] = scaling.number("rope_theta", settings.number("rope_theta", 10_000))
    fields["rotary_stretch"] = scaling.number("factor")
    if kind == _LLAMA3:
        context = _trained_context(settings, scaling)
        wavelengths = tuple(context / scaling.number(f"{which}_freq_factor") for which in ("high", "low"))
        fields["rotary_stretched_wavelengths"] = wavelengths
    return fields


def _trained_context(settings: Settings, scaling: Settings) -> int:
    """The context before stretching: transformers takes what the config says beside the scaling before what that says.

    Raises:
        UserError: neither is there, nor a context at all.
    """
    name = "original_max_position_embeddings"
    within = scaling.whole(name) if name in scaling else settings.whole("max_position_embeddings")
    return settings.whole(name, within)


def stretching_config(architecture: Architecture) -> dict[str, Any]:
    """The settings of a config for stretched wavelengths; none where they aren't."""
    a = architecture
    if a.positions != "rotary" or a.rotary_stretch == 1:
        return {}
    if a.rotary_stretched_wavelengths is None:
        return {"rope_scaling": {"rope_type": _LINEAR, "factor": a.rotary_stretch}}
    first, last = a.rotary_stretched_wavelengths
    return {
        "rope_scaling": {
            **{"rope_type": _LLAMA3, "factor": a.rotary_stretch, "original_max_position_embeddings": a.n_ctx},
            **{"low_freq_factor": a.n_ctx / last, "high_freq_factor": a.n_ctx / first},
        }
    }
