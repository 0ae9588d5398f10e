"""Pieces of the second reading, by numbers that one can do on paper."""

import math

import torch

from headstream.tasks.importing.reference.attended_values import ScoreForm, Visible, attended
from headstream.tasks.importing.reference.file_tensors import FileTensors
from headstream.tasks.importing.reference.llama import llama_logits
from headstream.tasks.importing.reference.maths import gelu, gelu_tanh, layer_norm, read_out, rms_norm, rotated, silu


def tensor(*numbers: object) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def test_norms():
    assert layer_norm(tensor(1, 3), 0.0, tensor(2, 2), tensor(5, 5)).tolist() == [3, 7]
    assert layer_norm(tensor(1, 3), 3.0).tolist() == [-0.5, 0.5]  # sqrt(1 + 3)
    assert rms_norm(tensor(3, 4, 0, 0), 0.0, tensor(5, 5, 1, 1)).tolist() == [6, 8, 0, 0]


def test_activations():
    assert math.isclose(float(gelu(tensor(1.0))), 0.8413447460685429)  # the normal distribution up to 1
    assert math.isclose(float(gelu_tanh(tensor(1.0))), 0.5 * (1 + math.tanh(math.sqrt(2 / math.pi) * 1.044715)))
    assert math.isclose(float(silu(tensor(math.log(3)))), 0.75 * math.log(3))


def test_pairs_turn_with_position_and_the_second_at_a_rate_of_its_own():
    x = tensor(1, 2, 0, 0, 9).expand(1, 3, 1, 5)
    by_half = rotated(x, base=16.0, n_turned=4, half_split=True)[0, 2, 0]  # pairs (0, 2) and (1, 3), rates 1 and 1/4
    neighbours = rotated(x, base=16.0, n_turned=4, half_split=False)[0, 2, 0]  # pairs (0, 1) and (2, 3)
    expected = [math.cos(2), 2 * math.cos(0.5), math.sin(2), 2 * math.sin(0.5), 9]
    torch.testing.assert_close(by_half, tensor(*expected))
    turned = (1 + 2j) * complex(math.cos(2), math.sin(2))
    torch.testing.assert_close(neighbours, tensor(turned.real, turned.imag, 0, 0, 9))
    assert torch.equal(rotated(x, 16.0, 4, True)[:, 0], x[:, 0])


def test_attention_sees_itself_and_what_is_before_within_its_window():
    q = k = torch.zeros(1, 4, 2, 1, dtype=torch.float64)
    v = tensor(1, 2, 4, 8)[None, :, None, None].expand(1, 4, 2, 1)
    torch.testing.assert_close(attended(q, k, v, ScoreForm(1.0))[0, :, 1, 0], tensor(1, 1.5, 7 / 3, 15 / 4))
    torch.testing.assert_close(attended(q, k, v, ScoreForm(1.0), Visible(2))[0, :, 0, 0], tensor(1, 1.5, 3, 6))


def test_attention_with_a_stride_sees_every_so_manyth_value_of_its_window():
    q = k = torch.zeros(1, 5, 1, 1, dtype=torch.float64)
    v = tensor(1, 2, 4, 8, 16)[None, :, None, None]
    torch.testing.assert_close(attended(q, k, v, ScoreForm(1.0), Visible(2, 2))[0, :, 0, 0], tensor(1, 2, 2.5, 5, 10))


def test_attention_of_the_highest_scores_leaves_out_all_others_and_of_equal_ones_those_furthest_back():
    q, v = torch.ones(1, 4, 1, 1, dtype=torch.float64), tensor(1, 2, 4, 8)[None, :, None, None]
    k = tensor(5, 1, 1, 1)[None, :, None, None] * math.log(3)
    expected = tensor(1, (81 + 2) / 82, (81 + 4) / 82, (81 + 8) / 82)  # 3^5 is to 3 as 81 is to 1
    torch.testing.assert_close(attended(q, k, v, ScoreForm(1.0), Visible(top_k=2))[0, :, 0, 0], expected)


def test_heads_read_the_keys_of_their_group_and_scores_are_scaled():
    q = torch.ones(1, 2, 4, 1, dtype=torch.float64)
    k = tensor(0, 0, math.log(3), math.log(9)).reshape(1, 2, 2, 1)  # [pos, group]
    v = tensor(0, 0, 1, 1).reshape(1, 2, 2, 1)
    found = attended(q, k, v, ScoreForm(0.5))[0, 1, :, 0]
    share = [math.sqrt(odds) / (1 + math.sqrt(odds)) for odds in (3, 3, 9, 9)]
    torch.testing.assert_close(found, tensor(*share))


def test_logits_of_many_rows_are_those_of_one_product(monkeypatch):
    monkeypatch.setattr("headstream.tasks.importing.reference.maths.UNEMBEDDING_ROWS", 3)
    x, W, bias = torch.randn(1, 2, 5).double(), torch.randn(11, 5), torch.randn(11).double()
    torch.testing.assert_close(read_out(x, W, bias), x @ W.double().T + bias)


def test_a_llama_of_one_layer_by_hand():
    """One head of width 2, d_model 2, all maps the identity but for W_down = 0: attention alone, done on paper."""
    eye = torch.eye(2)
    weights = {"model.embed_tokens.weight": torch.tensor([[1.0, 1.0], [1.0, -1.0]]), "lm_head.weight": eye}
    maps = {"self_attn": ("q", "k", "v", "o"), "mlp": ("gate", "up", "down")}
    names = [f"model.layers.0.{place}.{part}_proj.weight" for place, parts in maps.items() for part in parts]
    weights |= dict.fromkeys(names, eye) | {"model.layers.0.mlp.down_proj.weight": 0 * eye}
    norms = ("model.layers.0.input_layernorm", "model.layers.0.post_attention_layernorm", "model.norm")
    weights |= {f"{norm}.weight": torch.ones(2) for norm in norms}
    config = {"model_type": "llama", "num_attention_heads": 1, "hidden_size": 2, "num_hidden_layers": 1}
    config["rms_norm_eps"] = 0.0
    logits = llama_logits(FileTensors(frozenset(weights), weights.__getitem__), config, torch.tensor([[0, 1]]))
    assert torch.allclose(logits[0, 0], tensor(1, 1))  # it sees itself alone: 2 (1, 1), normed
    turned = (1 - 1j) * complex(math.cos(1), math.sin(1))  # query (and key) of position 1
    scores = [(turned.real + turned.imag) / math.sqrt(2), 2 / math.sqrt(2)]
    weight = math.exp(scores[1]) / (math.exp(scores[0]) + math.exp(scores[1]))
    x = tensor(1 + 1, -1 + (1 - weight) - weight)
    torch.testing.assert_close(logits[0, 1], x / torch.sqrt((x * x).mean()))
