"""Writes the reference in flows/README.md: every command with an example, and every field of a study file."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import BaseModel
from typer.main import get_command

from headstream.flows.command_line import app
from headstream.models.architecture import Architecture
from headstream.tasks import places
from headstream.tasks.study.analyses import DECLARED
from headstream.tasks.study.mistakes import ALSO_WRITTEN, section_of
from headstream.tasks.study.names import IN_WORDS
from headstream.tasks.study.schema import ModelSection, Study, TrainingSection
from headstream.tasks.study.training_config import TrainingConfig
from headstream.tasks.words.generated_pages import rewrite_below
from headstream.tasks.words.markdown import markdown_table

REFERENCE_PAGE = places.ROOT / "flows" / "README.md"
MARK = "<!-- What follows is written by `python -m headstream.flows.command_reference`. -->\n"
COLUMNS = 110
MAX_OUTPUT_LINES = 24  # of an output; the middle of a longer one is left out
HOME = "~/headstream"  # stands in outputs for the folder that the examples ran in
EXAMPLE_STUDIES = {"quick": "smoke", "heads": "wide", "2L4H": "2L2H"}  # quick replacements for studies that take longer
MAKE_WIDE = "sed -n 's/smoke/wide/; s/d_model = 32/d_model = 48/; w wide.toml'"
# Sections whose fields a study may leave out, and the configs that then give them their defaults.
COMPLETE: dict[type[BaseModel], type[BaseModel]] = {ModelSection: Architecture, TrainingSection: TrainingConfig}
LARGE = {stage.config: stage.large_fields for stage in DECLARED.values() if stage.config}  # with that budget
BOUNDS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "below {}",
    "minItems": "at least {}",
    "maxItems": "at most {}",
    "maxLength": "at most {} characters",
    "pattern": "{}",
}
TYPE_NAMES = {"integer": "integer", "number": "number", "boolean": "true or false", "string": "text", "object": "table"}


def commands_in_markdown(outputs: Mapping[str, str]) -> str:
    """The generated part of the page, given the output of each example."""
    return "\n\n".join(["## Commands", *_commands(outputs), "## Study files", *_sections("", Study)]) + "\n"


def examples() -> list[str]:
    """The example in each command's help, with studies that take little time."""
    return [_example(command.epilog) for command in get_command(app).commands.values()]  # type: ignore[attr-defined]


def record_outputs() -> dict[str, str]:
    """Run every example, in a folder of its own, and keep what it prints."""
    with TemporaryDirectory() as folder:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        own = {"HEADSTREAM_HOME": folder, "PREFECT_HOME": f"{folder}/prefect", "COLUMNS": str(COLUMNS), "PATH": path}

        def printed(command: str) -> str:
            done = subprocess.run(
                shlex.split(command), cwd=folder, env=os.environ | own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            lines = [line.rstrip() for line in done.stdout.decode().replace(folder, HOME).rstrip().splitlines()]
            ends = [*lines[: MAX_OUTPUT_LINES // 2], "...", *lines[-MAX_OUTPUT_LINES // 2 :]]
            return "\n".join(lines if len(lines) <= MAX_OUTPUT_LINES else ends)

        outputs = {}
        for example in examples():
            if "wide" in example:
                printed(f"{MAKE_WIDE} {shlex.quote(str(places.STUDIES / 'smoke.toml'))}")
                printed("headstream run wide.toml")
            outputs[example] = printed(f"timeout --signal=INT 60 {example}" if " up " in example else example)
    return outputs


def _example(epilog: str) -> str:
    words = epilog.removeprefix("Example: ").split(" ")
    return " ".join(EXAMPLE_STUDIES.get(word, word) for word in words)


def _commands(outputs: Mapping[str, str]) -> Iterator[str]:
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        context = command.context_class(command, info_name=f"headstream {name}")
        usage = command.get_usage(context).removeprefix("Usage: ")
        options = [told for each in command.params if (told := each.get_help_record(context))]
        yield f"### headstream {name}\n\n{command.help}\n\n    {usage}"
        if options:
            yield _table(
                ("argument or option", "meaning"), [(f"`{option}`", " ".join(text.split())) for option, text in options]
            )
        example = _example(command.epilog)
        yield f"```console\n$ {example}\n{outputs[example]}\n```"


def _sections(path: str, config: type[BaseModel], description: str = "") -> Iterator[str]:
    """A table of a section's own fields, then its sections."""
    complete = COMPLETE.get(config, config)
    fields = complete.model_json_schema()["properties"]
    rows, inner = [], []
    for name, field in complete.model_fields.items():
        text = field.description or ""
        own, several = section_of(field.annotation)
        if own:
            within = f"{path}.{name}".lstrip(".")
            written = ALSO_WRITTEN.get(within, within)
            inner.append((f"[{written}]" if several else written, own, text))
        else:
            large = f"; large: `{json.dumps(LARGE[config][name])}`" if name in LARGE.get(config, {}) else ""
            written = field.alias or name
            rows.append((f"`{written}`", _kind(fields[written]), _default(fields[written]) + large, text))
    yield f"### [{path}]\n\n{description}" if path else "### At the top of the file"
    yield _table(("field", "value", "default", "description"), rows)
    for section in inner:
        yield from _sections(*section)


def _kind(schema: Mapping[str, Any]) -> str:
    """The values that a field accepts: its type and bounds, or its choices."""
    if "anyOf" in schema:
        return " or ".join(_kind(choice) for choice in schema["anyOf"] if choice.get("type") != "null")
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{json.dumps(choice)}`" for choice in schema.get("enum") or [schema["const"]])
    bounds = [words.format(_readable(schema[bound])) for bound, words in BOUNDS.items() if bound in schema]
    if schema.get("type") == "array":
        size = f" ({', '.join(bounds)})" if bounds else ""
        return f"list{size} of {_kind(schema['items'])}"
    return ", ".join([TYPE_NAMES[schema["type"]], *bounds])


def _readable(bound: float | str) -> str:
    return IN_WORDS[bound] if isinstance(bound, str) else f"{bound:,}".removesuffix(".0")


def _default(schema: Mapping[str, Any]) -> str:
    if "default" not in schema:
        return "required"
    return "not set" if schema["default"] is None else f"`{json.dumps(schema['default'])}`"


def _table(heading: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    escaped = ((cell.replace("|", r"\|") for cell in row) for row in rows)
    return markdown_table(heading, [False] * len(heading), escaped)


if __name__ == "__main__":
    rewrite_below(MARK, REFERENCE_PAGE, commands_in_markdown(record_outputs()))
