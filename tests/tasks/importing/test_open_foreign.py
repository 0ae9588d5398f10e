"""What is no model, refused in one line that says what would be."""

from pathlib import Path

import pytest

from headstream.tasks.errors import UserError
from headstream.tasks.importing.open_foreign import open_foreign


def nothing(folder: Path) -> Path:
    return folder / "nothing"


def empty_folder(folder: Path) -> Path:
    return folder


def text(folder: Path) -> Path:
    (folder / "model.txt").write_text("weights")
    return folder / "model.txt"


def weights_alone(folder: Path) -> Path:
    (folder / "model.safetensors").write_bytes(b"")
    return folder / "model.safetensors"


def links_in_a_circle(folder: Path) -> Path:
    (folder / "a").symlink_to(folder / "b")
    (folder / "b").symlink_to(folder / "a")
    return folder / "a" / "model"


def long_name(folder: Path) -> Path:
    return folder / ("a" * 5000)


def no_name(folder: Path) -> Path:
    return folder / "a\0b"


@pytest.mark.parametrize("place", [nothing, empty_folder, text, weights_alone, links_in_a_circle, long_name, no_name])
def test_what_is_no_model_is_refused_in_a_line(place, tmp_path):
    with pytest.raises(
        UserError, match=r"no file or folder|no model that can be read|not a model that can be read|can't open"
    ) as refused:
        open_foreign(place(tmp_path))
    assert "\n" not in str(refused.value)
