"""Settings as a model's file says them: each definition reads them for itself, as the library of its format does."""

from collections.abc import Mapping
from typing import Any


class UndefinedSettingError(ValueError):
    """A file asks for something that the definition of its format hasn't got."""


def given(said: Mapping[str, Any], name: str, default: Any) -> Any:
    """A setting's value; one that is null counts as not given."""
    value = said.get(name)
    return default if value is None else value


def require_defined(said: Mapping[str, Any], defined: Mapping[str, tuple[Any, ...]]) -> None:
    """Refuse settings with other values than those that are defined, of which the first is the default.

    Raises:
        UndefinedSettingError: names the first of them.
    """
    for name, values in defined.items():
        if given(said, name, values[0]) not in values:
            raise UndefinedSettingError(f"{name} = {said[name]!r}")


def rotary_entries(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a config of transformers says of rotary positions: in `rope_scaling`, else in `rope_parameters`.

    Source: transformers' RotaryEmbeddingConfigMixin, `convert_rope_params_to_dict`.

    Raises:
        UndefinedSettingError: the angles are scaled in some way, or differ by layer.
    """
    entries = config.get("rope_scaling") or config.get("rope_parameters") or {}
    kind = entries.get("rope_type") or entries.get("type") or "default"
    if kind != "default":
        raise UndefinedSettingError(f"rope_type = {kind!r}")
    for name, value in entries.items():
        if isinstance(value, Mapping):
            raise UndefinedSettingError(f"rotary positions for {name} alone")
    return entries
