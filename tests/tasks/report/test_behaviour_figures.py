"""The drawing of a behaviour's circuit and its curves over size: what they show, and what they say."""

import re

import pandas as pd
import pytest

from headstream.tasks.report.behaviour_words import behaviour_lines
from headstream.tasks.report.sections.prompts.behaviour_circuit import behaviour_circuit
from headstream.tasks.report.sections.prompts.behaviour_curve import behaviour_curve

ABOUT = {
    "prompts": "repeats", "model": "2L4H", "pairs": 20, "accuracy": 0.9, "can_do_it": "yes", "these_make": 0.95,
    "cmd": 0.05, "edges_for_nine_tenths": "4 of 81", "edges_surely_in": 3, "cmd_of_random": 0.7,
}  # fmt: skip
EDGES = [
    ("L1H0", "logits", "in", 1.0, True),
    ("L0H0", "L1H0", "K", 0.9, True),
    ("embedding", "L0H0", "V", 0.9, True),
    ("L0G1", "L1MLP", "in", -0.2, False),
    ("embedding", "L1G0", "K", 0.1, False),
]


class Found:
    """Results of one study of one kind of model."""

    def __init__(self, writers=("L0H0",), edges=EDGES):
        edges = pd.DataFrame(edges, columns=["writer", "reader", "port", "share", "surely_in"])
        curves = [
            {"edges_by": kind, "draw": draw, "fraction": fraction, "faithfulness": f, "completeness": c, "n_edges": 9}
            for kind, draws, f, c in (
                ("absolute", 1, 0.95, 0.1), ("signed", 1, 1.2, None), ("random", 2, 0.01, None), ("swapped", 1, 0, None)
            )
            for draw in range(draws)
            for fraction in (0.001, 0.1, 1.0)
        ]  # fmt: skip
        self.frames = {
            "behaviours": pd.DataFrame([ABOUT]),
            "behaviour_edges": edges.assign(
                label="2L4H", n_layers=2, prompts="repeats", is_exact=True, in_circuit=True
            ),
            "behaviour_curves": pd.DataFrame(curves).assign(label="2L4H", prompts="repeats"),
        }
        circuit = {"label": "2L4H", "is_circuit": True, "reader": "L1H0", "kind": "K", "writers": list(writers)}
        self.tables = {
            "answer": [{"label": "2L4H", "n_layers": 2}],
            "induction_circuits": [circuit],
            "behaviours": [ABOUT],
        }

    def frame(self, name):
        return self.frames[name]

    def rows(self, name):
        return self.tables[name]


def test_the_circuit_is_drawn_with_every_node_and_edge():
    (picture,) = behaviour_circuit(Found())
    axes = picture.figure.axes[0]
    assert {text.get_text() for text in axes.texts} == {
        "embedding", "L0H0", "L0G1", "L1G0", "L1H0", "L1MLP", "logits",
    }  # fmt: skip
    assert len(axes.patches) == len(EDGES)
    heights = {text.get_text(): text.get_position()[1] for text in axes.texts}
    assert (
        heights["embedding"]
        < heights["L0G1"]
        < heights["L0H0"]
        < heights["L1H0"]
        < heights["L1MLP"]
        < heights["logits"]
    )
    assert "4 of 81 edges of 2L4H make 0.95 of the difference" in picture.sentence
    assert "3 edges are surely in" in picture.sentence
    assert "L1H0 to logits (1.00), L0H0 to K of L1H0 (0.90)" in picture.sentence
    assert picture.sentence.endswith("The induction circuit has the same writers of the keys of L1H0: L0H0.")
    legend = {text.get_text() for text in picture.figure.legends[0].texts}
    assert {"into keys", "works against it"} <= legend


@pytest.mark.parametrize(
    ("writers", "said"),
    [
        (("L0H0", "L0H2"), "Of the writers of the keys of L1H0, L0H2 only the induction circuit has."),
        (
            ("L0H3",),
            "Of the writers of the keys of L1H0, L0H0 only patching finds and L0H3 only the induction circuit has.",
        ),
    ],
)
def test_where_composition_differs_is_said(writers, said):
    (picture,) = behaviour_circuit(Found(writers))
    assert picture.sentence.endswith(said)


def test_curves_stand_beside_random_circuits():
    (picture,) = behaviour_curve(Found())
    assert picture.sentence == (
        "On repeats, 10 % of the edges of 2L4H make 0.95 of the difference; as many random ones 0.01, and all others "
        "than these 0.10. With helping edges alone it is at most 1.20."
    )
    assert len(picture.figure.axes[0].lines) == 4  # by size, by helping size, without the circuit, and 1
    assert not re.search("mathdefault", "".join(t.get_text() for t in picture.figure.axes[0].get_xticklabels()))


def test_the_answer_says_how_it_is_done():
    assert behaviour_lines(Found()) == [
        "How 2L4H does repeats (right in 0.90 of 20 pairs of prompts): 4 of 81 edges make 0.95 of the difference, on"
        " pairs that they were not found on; 3 are surely in."
    ]


def test_the_answer_counts_many_behaviours_before_it_tells_of_two():
    found = Found()
    sets = {"ioi": 0.03, "agreement": 0.01, "repeats": 0.17}
    found.tables["behaviours"] = [ABOUT | {"prompts": name, "cmd": cmd} for name, cmd in sets.items()]
    found.tables["behaviours"].append(ABOUT | {"prompts": "capitals", "can_do_it": "not shown"})
    first, *how = behaviour_lines(found)
    assert first == (
        "Of 4 behaviours that were asked for, 3 can be done: agreement, ioi and repeats. CMD of their circuits is 0.010"
        " to 0.170, that of random ones 0.700 to 0.700."
    )
    assert [line.split(" (")[0] for line in how] == ["How 2L4H does agreement", "How 2L4H does ioi"]


def test_the_answer_says_that_nothing_is_shown():
    found = Found()
    found.tables["behaviours"] = [ABOUT | {"can_do_it": "not shown", "accuracy": 0.5}]
    (line,) = behaviour_lines(found)
    assert line.startswith(
        "No behaviour that was asked for is shown, so that no circuit was looked for: 2L4H is right in 0.50 of 20 pairs"
        " of repeats. It is shown if, "
    )
    found.tables["behaviours"] = [ABOUT | {"can_do_it": None, "accuracy": None, "prompts": name} for name in "abc"]
    assert "a was not measured on 2L4H, b was not measured on 2L4H, and 1 more like these." in behaviour_lines(found)[0]
    found.tables["behaviours"] = []
    assert behaviour_lines(found) == []


def test_without_a_circuit_there_is_no_picture():
    empty = Found()
    empty.frames = {name: frame[:0] for name, frame in empty.frames.items()}
    for draw in (behaviour_circuit, behaviour_curve):
        (picture,) = draw(empty)
        assert picture.figure is None
        assert picture.sentence.startswith("No picture: ")
