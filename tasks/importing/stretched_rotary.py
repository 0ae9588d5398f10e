"""Rotary positions whose wavelengths are stretched for longer contexts, as configs of transformers ask for them."""

from typing import Any

from headstream.models.architecture import Architecture
from headstream.tasks.importing.rotary_settings import rotary_base_of
from headstream.tasks.importing.settings import Settings

LINEAR, LLAMA3 = "linear", "llama3"


def rotary_fields(settings: Settings, name: str = "rope_theta") -> dict[str, Any]:
    """Fields of an architecture for rotary positions, stretched or not; `name` is the older setting of their base.

    Raises:
        UserError: they are changed in another way.
    """
    older = settings.section("rope_scaling")
    scaling = older if older.all() else settings.section("rope_parameters")
    kind = scaling.all().get("rope_type", scaling.all().get("type"))
    if kind not in (LINEAR, LLAMA3):
        return {"rotary_base": rotary_base_of(settings, name)}
    base = scaling.number("rope_theta", settings.number(name, 10_000))
    fields: dict[str, Any] = {"rotary_base": base, "rotary_stretch": scaling.number("factor")}
    if kind == LLAMA3:
        context = scaling.whole("original_max_position_embeddings")
        wavelengths = tuple(context / scaling.number(f"{which}_freq_factor") for which in ("high", "low"))
        fields["rotary_stretched_wavelengths"] = wavelengths
    return fields


def stretching_config(architecture: Architecture) -> dict[str, Any]:
    """The settings of a config for stretched wavelengths; none where they aren't."""
    a = architecture
    if a.positions != "rotary" or a.rotary_stretch == 1:
        return {}
    if a.rotary_stretched_wavelengths is None:
        return {"rope_scaling": {"rope_type": LINEAR, "factor": a.rotary_stretch}}
    first, last = a.rotary_stretched_wavelengths
    return {
        "rope_scaling": {
            **{"rope_type": LLAMA3, "factor": a.rotary_stretch, "original_max_position_embeddings": a.n_ctx},
            **{"low_freq_factor": a.n_ctx / last, "high_freq_factor": a.n_ctx / first},
        }
    }
