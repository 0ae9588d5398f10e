"""What the README says of Python."""

import re
from pathlib import Path

import headstream as hs
from headstream.tasks import places

BLOCKS = re.findall(r"```python\n(.*?)```", (places.ROOT / "README.md").read_text(), flags=re.DOTALL)


def test_its_code_works(home: Path, content: str, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("my_study.toml").write_text(content)
    names: dict[str, object] = {}
    monkeypatch.setattr("webbrowser.open_new_tab", lambda address: None)
    for block in BLOCKS:
        exec(block.replace("quick", "ours").replace("2L4H", "2L2-3H"), names)
    assert "L1H2" in capsys.readouterr().out
    assert isinstance(names["results"], hs.Results)


def test_a_model_and_its_patterns_are_three_lines_away():
    assert len([line for line in BLOCKS[0].splitlines() if line]) == 3
