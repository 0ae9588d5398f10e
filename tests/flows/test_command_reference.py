"""flows/README.md says what --help and the schema of a study say."""

import re

import pytest

from headstream.flows.command_reference import MARK, REFERENCE_PAGE, commands_in_markdown, examples
from headstream.tasks import places

PAGE = REFERENCE_PAGE.read_text()
OUTPUTS = dict(re.findall(r"^```console\n\$ ([^\n]*)\n(.*?)\n```$", PAGE, flags=re.MULTILINE | re.DOTALL))


def test_the_page_is_up_to_date():
    assert list(OUTPUTS) == examples(), "an example has changed: run `python -m headstream.flows.command_reference`"
    assert PAGE.partition(MARK)[2].strip() == commands_in_markdown(OUTPUTS).strip(), (
        "run `python -m headstream.flows.command_reference`"
    )


@pytest.mark.parametrize("example", OUTPUTS)
def test_the_output_of_an_example_is_no_error(example):
    assert OUTPUTS[example]
    assert not re.search(r"^headstream: |Traceback|rror:|/tmp/", OUTPUTS[example], flags=re.MULTILINE)


def test_every_environment_variable_of_headstream_is_explained():
    sources = [path.read_text() for folder in ("flows", "tasks") for path in (places.ROOT / folder).rglob("*.py")]
    variables = set(re.findall(r"\bHEADSTREAM_[A-Z_]*[A-Z]\b", "".join(sources)))
    assert variables == set(re.findall(r"^\| `(HEADSTREAM_\w+)`", PAGE, flags=re.MULTILINE))
