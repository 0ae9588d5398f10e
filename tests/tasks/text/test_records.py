import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstream.tasks.text import records
from headstream.tasks.text.records import json_values

RECORD = st.dictionaries(st.text(max_size=5), st.text() | st.integers() | st.none() | st.lists(st.text()), max_size=4)


def with_lengths(value: object) -> object:
    """A value with its numbers' lengths in place of them."""
    if isinstance(value, dict):
        return {name: with_lengths(each) for name, each in value.items()}
    return len(str(value)) if isinstance(value, int) else value


@given(st.lists(RECORD, max_size=8), st.sampled_from([None, 0, 2]), st.booleans(), st.booleans(), st.integers(1, 64))
def test_json_is_what_was_written_wherever_a_block_ends(written, indent, is_array, is_ascii, block):
    def dump(value: object) -> str:
        return json.dumps(value, indent=indent, ensure_ascii=is_ascii)

    raw = dump(written) if is_array else "\n".join(map(dump, written))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "BLOCK_BYTES", block)
        found = list(json_values(io.BytesIO(raw.encode()), 1_000_000))
    assert all(each.is_utf8 for each in found)
    assert [each.value for each in found] == [with_lengths(each) for each in written]


@pytest.mark.parametrize("raw", ['[{"a": 1}', '{"a": 1', "[1, x]", "1]", '{"a": "\x00"}', "nul"])
def test_what_is_not_json_or_cut_off_raises(raw):
    with pytest.raises(ValueError, match=r"."):
        list(json_values(io.BytesIO(raw.encode()), 1_000))


def test_a_mistake_is_found_without_reading_on():
    stream = io.BytesIO(b'[{"a" 1},' + b" " * (8 << 20) + b"]")
    with pytest.raises(ValueError, match="delimiter"):
        list(json_values(stream, 1 << 30))
    assert stream.tell() <= 1 << 20
