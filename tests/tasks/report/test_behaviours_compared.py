"""The picture of a circuit's formation: what it shows, and what it says of halves and of the phase change."""

import pandas as pd
import pytest

from headstream.tasks.report.sections.behaviours_compared.behaviour_formation import behaviour_formation

TOKENS = [0, 1_000, 2_000, 4_000]
LINES = {"the model": [0, 0.1, 1.0, 2.0], "its circuit": [0, 0, 0.9, 1.9], "L0H0 to K of L1H0": [0, 0, 0, 1.8]}
PHASE = {
    "score": "prefix_matching", "model": "2L4H", "window_start_tokens": 1_000, "window_end_tokens": 4_000,
    "has_ended": True,
}  # fmt: skip


class Found:
    """Results of one model, whose circuit passes half between the third checkpoint and the last."""

    def __init__(self, phase=(1_000, 4_000), lines=LINES):
        rows = [
            {"followed": name, "tokens": tokens, "nats": nats, "low_nats": nats - 0.1, "high_nats": nats + 0.1}
            for name, values in lines.items()
            for tokens, nats in zip(TOKENS, values, strict=True)
        ]
        times = [
            {"followed": name, "last_nats": values[-1], "below_half_tokens": 2_000, "half_tokens": 4_000}
            for name, values in lines.items()
        ]
        start, end = phase
        self.frames = {
            "behaviours_over_training": pd.DataFrame(rows).assign(label="2L4H", n_layers=2, prompts="repeats"),
            "behaviour_formation_times": pd.DataFrame(times).assign(
                model="2L4H", prompts="repeats", phase_start_tokens=start, phase_end_tokens=end
            ),
        }
        self.tables = {"answer": [{"label": "2L4H", "n_layers": 2}], "phase_changes": [PHASE]}

    def frame(self, name):
        return self.frames[name]

    def rows(self, name):
        return self.tables[name]


def test_model_circuit_and_edges_are_drawn_over_tokens():
    (picture,) = behaviour_formation(Found())
    axes = picture.figure.axes[0]
    lines = {line.get_label(): list(line.get_ydata()) for line in axes.lines if line.get_label() in LINES}
    assert lines == {name: values[1:] for name, values in LINES.items()}  # the initialisation has no place there
    assert "passes half of its last value, 2.00 nats, between 2.0 k and 4.0 k tokens" in picture.sentence
    assert "what its last circuit makes, 1.90 nats, between 2.0 k and 4.0 k tokens" in picture.sentence
    assert picture.sentence.endswith("Its edge passes half of its last score then, too.")


def test_edges_that_form_at_another_time_are_named():
    found = Found(lines=LINES | {"embedding to logits": [0, 1.0, 1.0, 1.0]})
    times = found.frames["behaviour_formation_times"]
    times.loc[times.followed == "embedding to logits", ["below_half_tokens", "half_tokens"]] = None, 1_000
    (picture,) = behaviour_formation(found)
    assert "Of its 2 edges, 1 pass half of their last scores then; embedding to logits by 1.0 k" in picture.sentence


@pytest.mark.parametrize(
    ("phase", "said"),
    [
        ((1_000, 4_000), "while prefix matching rises (1.0 k to 4.0 k tokens)"),
        ((4_000, 5_000), "before prefix matching rises"),
        ((500, 2_000), "after prefix matching rises"),
        ((None, None), ""),
    ],
)
def test_halves_are_told_beside_the_phase_change(phase, said):
    (picture,) = behaviour_formation(Found(phase))
    assert said in picture.sentence
    assert ("prefix matching" in picture.sentence) == bool(said)


def test_what_was_not_followed_says_so():
    found = Found()
    found.frames = {name: frame.iloc[:0] for name, frame in found.frames.items()}
    (picture,) = behaviour_formation(found)
    assert picture.figure is None
    assert "No picture" in picture.sentence
