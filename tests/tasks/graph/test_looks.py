"""Seeds until claims are decided: which a study has, which come next, and what each look makes of them."""

import numpy as np
import pytest
from empty_warehouse import empty_warehouse

from headstream.tasks import places
from headstream.tasks.errors import UserError
from headstream.tasks.graph.looks import at_its_look, at_the_last_look, next_look
from headstream.tasks.results.claim_files import read_claims
from headstream.tasks.results.claim_values import Value
from headstream.tasks.results.claim_verdicts import of_configuration
from headstream.tasks.study.schema import parse_study
from headstream.tasks.study.until_decided import LOOKS

(GAIN,) = (claim for claim in read_claims() if claim.claim_id == "composition-matters")  # a mean above 0.2
TWO, FOUR = "n_layers=2 n_heads=2", "n_layers=2 n_heads=4"


def grown_study(**seed):
    grid = {"n_layers": [1, 2], "n_heads": [2, 4], "seed": {"until": "decided"} | seed}
    return parse_study("grown.toml", {"name": "grown", "grid": grid})


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADSTREAM_HOME", str(tmp_path))


@pytest.fixture
def undecided():
    """A function that has the warehouse say that findings are undecided at some places."""

    def say(*places_of: str, kind: str = "finding") -> None:
        path = places.warehouse_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        with empty_warehouse(path) as connection:
            connection.execute(
                "INSERT INTO claims (study, claim_id, kind) VALUES ('grown', 'composition-matters', ?)", [kind]
            )
            for i, (verdict, place) in enumerate([("holds", "n_layers=1"), *(("undecided", own) for own in places_of)]):
                row = ["grown", "composition-matters", str(i), [place], verdict]
                columns = "study, claim_id, configuration, kinds, verdict"
                connection.execute(f"INSERT INTO claim_configurations ({columns}) VALUES (?, ?, ?, ?, ?)", row)

    return say


def test_it_begins_with_three_seeds_of_each_kind():
    study = grown_study()
    assert len(study.kinds) == 4
    assert len(study.cells) == 4 * 3
    assert {cell.training.seed for cell in study.cells} == {0, 1, 2}
    assert len(at_the_last_look(study).cells) == 4 * 17
    assert len(at_the_last_look(grown_study(at_most=5)).cells) == 4 * 5
    assert at_its_look(study) == study, "nothing was recorded"


def test_kinds_of_which_something_is_undecided_get_more_seeds(undecided):
    study = grown_study(at_most=9)
    undecided(FOUR)
    assert (more := next_look(study)).until_decided.so_far == {FOUR: 5}
    assert len(more.cells) == 3 * 3 + 5
    assert {cell.label for cell in study.cells} < {cell.label for cell in more.cells}
    undecided("n_layers=2")  # which both have
    assert next_look(more).until_decided.so_far == {FOUR: 9, TWO: 5}
    assert next_look(study.with_seeds({TWO: 9, FOUR: 9})) is None, "there are no more"
    undecided()
    assert next_look(more) is None
    undecided(FOUR, kind="description")
    assert next_look(more) is None
    undecided(FOUR)
    assert next_look(grown_study(claims=["gap-filling"])) is None, "it is another claim that is undecided"
    assert next_look(grown_study(claims=["gap-filling", "composition-matters"])).until_decided.so_far == {FOUR: 5}


def test_a_list_of_seeds_stays_what_it_is(undecided):
    study = parse_study("s.toml", {"name": "grown", "grid": {"seed": [0, 1]}})
    undecided("seed=0")
    assert next_look(study) is None
    assert at_its_look(study) is at_the_last_look(study) is study
    assert study.kinds == []


def test_the_seeds_so_far_are_recorded_and_do_not_make_another_study():
    study = grown_study()
    more = study.with_seeds({TWO: 5})
    assert more.is_recorded_as(study.recorded)
    assert more.is_recorded_as(grown_study(at_most=9).recorded), "more seeds may be added to those that are there"
    assert not more.is_recorded_as(parse_study("s.toml", {"name": "grown"}).recorded)
    assert parse_study("again", more.recorded).cells == more.cells


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"grid": {"seed": {"until": "bored"}}}, r"\[grid.seed\] until: must be 'decided'"),
        ({"grid": {"seed": {"until": "decided", "at_most": 4}}}, "must be 3, 5, 9 or 17"),
        ({"grid": {"seed": {"until": "decided", "claims": ["gap-fill"]}}}, "no claim 'gap-fill'.*mean 'gap-filling'"),
        ({"grid": {"seed": {"until": "decided"}}, "training": {"seed": 1}}, "seed is given twice"),
        ({"grid": {"seed": {"until": "decided"}, "n_heads": [*range(1, 13)]}}, "got 204"),
    ],
)
def test_what_makes_no_sense_is_refused(content, message):
    with pytest.raises(UserError, match=message):
        parse_study("s.toml", {"name": "s"} | content)


# Verdicts, look by look


def decided(values, at_most=17):
    own = [Value("", seed, value, None, 1.0) for seed, value in enumerate(values)]
    return of_configuration(GAIN, "", own, own, at_most)


def test_each_look_has_its_own_part_of_the_error():
    """0.4 above the bar at three seeds: p = 0.02, more than 0.005 and less than 0.05."""
    three = [0.5, 0.6, 0.7]
    assert (
        of_configuration(GAIN, "", *[[Value("", s, v, None, 1.0) for s, v in enumerate(three)]] * 2)["verdict"]
        == "holds"
    )
    assert (decided(three)["verdict"], decided(three)["look"]) == ("undecided", 3)
    five = decided([*three, 0.6, 0.6])
    assert (five["verdict"], five["look"], five["n"]) == ("holds", 5, 5)
    assert five["chance"] <= 0.05


def test_what_was_decided_at_a_look_stays_decided():
    values = [1.0, 1.01, 0.99]
    first = decided(values)
    assert (first["verdict"], first["look"]) == ("holds", 3)
    assert decided([*values, -5.0, -5.0]) == first
    assert decided([*values, -5.0]) == first, "a seed before the next look changes nothing"


def test_a_look_waits_for_all_of_its_seeds():
    four = decided([0.5, 0.6, 0.7, 0.6])
    assert (four["look"], four["n"]) == (3, 3)


def test_at_the_bar_less_than_5_percent_are_decided_over_all_looks():
    draws = np.random.default_rng(0).normal(GAIN.rule.low, 0.3, (600, 17))
    false = np.mean([decided(own)["verdict"] != "undecided" for own in draws])
    assert 0.02 < false <= 0.05 + 2 * (0.05 * 0.95 / 600) ** 0.5
    assert sum(LOOKS.values()) == pytest.approx(0.05)
