"""Writers and carriers of planted circuits, named by what becomes of the reader without them."""

import pytest
import torch
from planted import BOS, induction_through_values, planted_induction, rotated

from headstream.models.circuits.circuit_writers import circuit_writers
from headstream.models.circuits.induction_without import induction_without
from headstream.models.nodes import Edge, Head
from headstream.models.repeats import fixed_period_repeats, random_period_repeats
from headstream.models.stimuli import Stimuli

D_VOCAB, N_CTX, LEVEL = 43, 32, 0.01
READER, WRITER, CARRIER = Head(1, 0), Head(0, 3), Head(0, 7)


@pytest.fixture(scope="module")
def stimuli():
    generator = torch.Generator().manual_seed(0)
    counts = torch.ones(D_VOCAB, dtype=torch.int64)
    text = torch.randint(1, D_VOCAB, (4, N_CTX + 1), generator=generator)
    text[:, 0] = BOS
    fixed, random = (
        draw(counts, BOS, N_CTX, n, generator) for draw, n in ((fixed_period_repeats, 4), (random_period_repeats, 24))
    )
    return Stimuli(BOS, text, text[:0], fixed, random, torch.arange(4))


def named(model, stimuli, **options):
    found = circuit_writers(model, stimuli, **{"level": LEVEL, "max_circuits": 64} | options)
    return {(own.reader, own.port): own.writers for own in found if own.writers}


def test_of_many_earlier_heads_the_one_that_carries_the_copy_is_named(stimuli):
    model = induction_through_values((10, 2), READER, WRITER, CARRIER, d_vocab=D_VOCAB, n_ctx=N_CTX)
    assert named(rotated(model), stimuli) == {(READER, "K"): (WRITER,), (READER, "V"): (CARRIER,)}


def test_of_writers_that_can_each_be_lost_all_are_named(stimuli):
    writers = (Head(0, 1), Head(0, 4), Head(0, 5))
    model = rotated(planted_induction((6, 2), READER, writers, d_vocab=D_VOCAB, n_ctx=N_CTX))
    found = named(model, stimuli)
    assert set(found) == {(READER, "K")}
    assert set(found[READER, "K"]) == set(writers)


def test_readers_that_are_tried_are_bounded_and_others_have_no_writers(stimuli):
    model = planted_induction((3, 3), READER, (WRITER._replace(head=1),), d_vocab=D_VOCAB, n_ctx=N_CTX)
    assert named(model, stimuli, max_circuits=0) == {}
    every = circuit_writers(model, stimuli, LEVEL, 64)
    assert [(own.reader, own.port) for own in every] == [(Head(1, head), port) for head in range(3) for port in "QKV"]


def test_what_repeats_nowhere_has_no_circuits(stimuli):
    model = planted_induction((2, 2), READER, (Head(0, 1),), d_vocab=D_VOCAB, n_ctx=N_CTX)
    nothing = Stimuli(BOS, stimuli.text, stimuli.more_text, None, None, stimuli.documents)
    assert circuit_writers(model, nothing, LEVEL, 64) == []


def test_values_change_no_attention(stimuli):
    model = induction_through_values((3, 3), READER, Head(0, 1), Head(0, 2), d_vocab=D_VOCAB, n_ctx=N_CTX)
    removal = (Edge(Head(0, 2), READER, "V"),)
    found = induction_without(model, stimuli.random_period, BOS, [removal])
    assert found[removal].attention.mean == found[READER].attention.mean
    assert found[READER].copying.mean > 5
    assert found[removal].copying.mean.abs() < 0.01
