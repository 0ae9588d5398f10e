"""Edges of every architecture: identities of their effects, and effects by hooks on the modules themselves."""

import pytest
import torch
from random_models import D_VOCAB, random_model

from headstream.models.nodes import MLP, Head, KeyValueGroup, Terminal
from headstream.models.prompts.circuit_runs import circuit_logits
from headstream.models.prompts.edge_scores import edge_scores, node_scores
from headstream.models.prompts.exact_effects import exact_edge_effects, exact_node_effects
from headstream.models.prompts.graph import PromptGraph
from headstream.models.prompts.graph_sizes import count_edges, count_writers
from headstream.models.prompts.head_looks import head_looks
from headstream.models.prompts.pairs import Pairs, answer_rows
from headstream.models.prompts.patched_runs import base_run

ARCHITECTURES = {
    "as trained by default": {},
    "llama": {"positions": "rotary", "normalization": "rmsnorm", "feed_forward": "swiglu", "d_head": 6, "d_mlp": 11},
    "gpt2": {"positions": "learned", "normalization": "layernorm", "feed_forward": "gelu", "biases": True},
    "gpt_neox": {
        "positions": "rotary", "normalization": "layernorm", "feed_forward": "gelu", "parallel_sublayers": True,
        "biases": True, "d_head": 8, "rotary_fraction": 0.5,
    },
    "grouped": {"n_heads": 4, "n_key_value_heads": 2, "qk_normalization": True, "qkv_biases": True},
    "norms after": {"normalization": "layernorm", "normalization_place": "post", "feed_forward": "relu", "n_layers": 3},
    "uneven heads": {"n_heads": (1, 0, 3), "n_layers": 3, "normalization": "rmsnorm"},
    "local": {"attention": "local", "attention_window": 4, "positions": "shortformer"},
    "top k": {"attention": "top_k", "top_k": 3, "positions": "sinusoidal", "tied_embeddings": True},
    "gated": {"gates": "hard_concrete", "positions": "learned_shortformer"},
    "olmo2": {
        "positions": "rotary", "normalization": "rmsnorm", "normalization_place": "output", "feed_forward": "swiglu",
        "qk_normalization": True, "qk_normalization_over": "layer", "d_head": 6,
    },
    "gemma2": {
        "positions": "rotary", "normalization": "rmsnorm", "normalization_place": "both", "feed_forward": "geglu_tanh",
        "d_head": 6, "norm_offset": True, "embedding_scale": 3.0, "score_cap": 4.0, "logit_cap": 5.0,
        "score_scale": 0.4, "attention": "local", "attention_window": 3, "windowed_layers": (0,),
    },
    "smeared": {"key_smearing": True, "positions": "rotary", "d_head": 6},
    "no layers": {"n_layers": 0},
}  # fmt: skip


@pytest.fixture(params=ARCHITECTURES, scope="module")
def model(request):
    return random_model(scale=0.35, **ARCHITECTURES[request.param])


@pytest.fixture(scope="module")
def pairs():
    generator = torch.Generator().manual_seed(1)
    clean = torch.randint(D_VOCAB, (3, 8), generator=generator)
    corrupt = clean.clone()
    corrupt[:, 2] = (clean[:, 2] + 5) % D_VOCAB
    corrupt[:, 5] = (clean[:, 5] + 9) % D_VOCAB
    return Pairs(clean, corrupt, answer_rows([[3], [4, 7], [5]]), answer_rows([[6], [8], [1, 2]]))


@pytest.fixture
def runs(model, pairs):
    return base_run(model, pairs.clean), base_run(model, pairs.corrupt)


def close(found, expected, atol=1e-9):
    torch.testing.assert_close(found, expected, rtol=0, atol=atol)


def test_all_edges_give_the_clean_run_and_none_the_corrupt_one(model, pairs, runs):
    graph = runs[0].graph
    close(runs[0].logits, model(pairs.clean)[:, -1])
    whole = circuit_logits(runs[1], pairs.clean, torch.ones(graph.n_edges, dtype=torch.bool))
    none = circuit_logits(runs[1], pairs.clean, torch.zeros(graph.n_edges, dtype=torch.bool))
    close(whole, runs[0].logits)
    close(none, runs[1].logits)


def test_the_exact_effect_of_an_edge_is_that_of_the_circuit_without_it(pairs, runs):
    clean, _ = runs
    graph, effects = clean.graph, exact_edge_effects(*runs, pairs, range(runs[0].graph.n_edges))
    for edge in {0, graph.n_edges // 2, graph.n_edges - 1}:
        without = torch.ones(graph.n_edges, dtype=torch.bool)
        without[edge] = False
        left = circuit_logits(base_run(clean.model, pairs.corrupt), pairs.clean, without)
        # What the writer writes is the same in both runs, since nothing before it changes.
        close(effects[edge], pairs.log_odds(clean.logits) - pairs.log_odds(left))


def test_effects_are_those_of_hooks_on_the_modules(model, pairs, runs):
    graph = runs[0].graph
    chosen = torch.randperm(graph.n_edges, generator=torch.Generator().manual_seed(2))[:12].tolist()
    effects = exact_edge_effects(*runs, pairs, chosen)
    for effect, place in zip(effects, chosen, strict=True):
        patched = patched_by_hooks(model, pairs, graph.edges[place])
        close(effect, pairs.log_odds(model(pairs.clean)[:, -1]) - pairs.log_odds(patched))


def test_nodes_are_all_their_edges_at_once(pairs, runs):
    clean, corrupt = runs
    graph = clean.graph
    noised, restored = exact_node_effects(clean, corrupt, pairs)
    assert noised[0].isnan().all()
    assert restored[0].isnan().all()
    for place, writer in list(enumerate(graph.writers))[1:]:
        out = torch.tensor([edge.writer == writer for edge in graph.edges])
        left = circuit_logits(corrupt, pairs.clean, ~out)
        whole = pairs.log_odds(clean.logits)
        if not any(edge.writer == writer and edge.reader is not Terminal.LOGITS for edge in graph.edges):
            close(noised[place], whole - pairs.log_odds(left))
    swapped = exact_node_effects(corrupt, clean, pairs)
    close(swapped[0][1:], -restored[1:])


def test_scores_of_a_writers_edges_add_up_to_that_of_the_writer(model, pairs):
    """The gradient by what a writer writes, taken by torch through the whole model, is that of all its readers."""
    found = node_scores(model, pairs)
    clean, corrupt = base_run(model, pairs.clean), base_run(model, pairs.corrupt)
    embedding = clean.embedding.clone().requires_grad_()
    log_odds = pairs.log_odds(model.forward_from(embedding, 0)[:, -1]).sum()
    (gradient,) = torch.autograd.grad(log_odds, embedding)
    close(found[0], ((clean.embedding - corrupt.embedding) * gradient).sum((1, 2)))


def test_mean_gradients_tell_the_whole_difference_as_steps_grow(model, pairs, runs):
    """Of all edges out of the embedding (Sundararajan et al. 2017, completeness): other writers' come from these."""
    clean, corrupt = runs
    difference = pairs.log_odds(clean.logits) - pairs.log_odds(corrupt.logits)
    of_embedding = torch.tensor([edge.writer is Terminal.EMBEDDING for edge in clean.graph.edges])
    if model.architecture.attention == "top_k":
        pytest.skip("which keys are kept changes by leaps, past which no gradient sees")
    errors = [
        (edge_scores(model, pairs, steps)[of_embedding].sum(0) - difference).abs().max().item() for steps in (4, 64)
    ]
    assert errors[1] < 0.02 * difference.abs().max() + 1e-9
    assert errors[1] <= errors[0] + 1e-9


def test_without_what_is_not_linear_scores_are_exact(pairs):
    """Zero layers, or patterns that no token decides."""
    model = random_model(n_layers=2, positions="relative")
    for layer in model.layers:
        layer.attention.W_Q.zero_()
    clean, corrupt = base_run(model, pairs.clean), base_run(model, pairs.corrupt)
    single = Pairs(pairs.clean, pairs.corrupt, pairs.answers[:, :1], pairs.wrong[:, :1])
    exact = exact_edge_effects(clean, corrupt, single, range(clean.graph.n_edges))
    for steps in (None, 3):
        close(edge_scores(model, single, steps), exact)


def test_scores_of_shared_keys_are_the_sums_of_those_of_the_heads_that_share_them(pairs):
    grouped = random_model(n_heads=4, n_key_value_heads=2)
    own = random_model(n_heads=4)
    weights = dict(grouped.named_parameters())
    for name, parameter in own.named_parameters():
        shared = weights.get(f"{name}_shared")
        parameter.data = weights[name] if shared is None else shared.repeat_interleave(2, dim=0)
    scores = {}
    for each in (grouped, own):
        edges = PromptGraph(each.architecture).edges
        for edge, score in zip(edges, edge_scores(each, pairs), strict=True):
            reader = edge.reader
            if each is own and edge.port in ("K", "V"):
                reader = KeyValueGroup(reader.layer, reader.head // 2)
            key = (each is own, str(edge.writer), str(reader), edge.port)
            scores[key] = scores.get(key, 0) + score
    for (is_own, *edge), score in scores.items():
        if is_own:
            close(score, scores[False, *edge])


def test_numbers_by_formula_are_those_of_the_graph(model):
    graph = PromptGraph(model.architecture)
    assert count_edges(model.architecture) == graph.n_edges == len(graph.edges)
    assert count_writers(model.architecture) == len(graph.writers)


def test_direct_effects_of_all_writers_are_the_log_odds():
    """With the last norm's scale frozen, and answers of one token each."""
    model = random_model(scale=0.35, normalization="rmsnorm", positions="rotary", d_head=6)
    generator = torch.Generator().manual_seed(3)
    clean, corrupt = torch.randint(D_VOCAB, (2, 3, 8), generator=generator)
    pairs = Pairs(clean, corrupt, answer_rows([[3], [4], [5]]), answer_rows([[6], [8], [1]]))
    run = base_run(model, clean)
    scale = model.final_norm.scale(run.streams[-1])[:, -1]
    difference = (model.W_U[:, pairs.answers[:, 0]] - model.W_U[:, pairs.wrong[:, 0]]).T
    of_embedding = (run.embedding[:, -1] * scale * difference).sum(1)
    close(head_looks(model, pairs).direct.sum(0) + of_embedding, pairs.log_odds(run.logits))


def test_counts_of_edges():
    """Figures of section 3's graph: GPT-2 small, and two layers of four heads without feed-forward layers."""
    gpt2 = {"n_layers": 12, "n_heads": 12, "d_model": 768, "feed_forward": "gelu", "positions": "learned"}
    from headstream.models.architecture import Architecture

    assert PromptGraph(Architecture(**gpt2)).n_edges == 32_491
    assert PromptGraph(Architecture(n_layers=2, n_heads=4)).n_edges == 12 + 60 + 9
    smollm2 = {"n_layers": 30, "n_heads": 9, "n_key_value_heads": 3, "d_model": 576, "feed_forward": "swiglu"}
    assert PromptGraph(Architecture(**smollm2)).n_edges == 70_651


def test_edges_off_every_path_are_left_out():
    graph = PromptGraph(random_model().architecture)

    def circuit(*names: str) -> torch.Tensor:
        labels = [f"{edge.writer} > {edge.reader} {edge.port}" for edge in graph.edges]
        assert set(names) <= set(labels)
        return torch.tensor([label in names for label in labels])

    path = ("embedding > L0H1 V", "L0H1 > L1H2 K", "L1H2 > logits in")
    whole = circuit(*path, "L0H0 > L1H2 Q", "embedding > L1H0 V")
    assert torch.equal(graph.connected(whole), circuit(*path))
    assert not graph.connected(circuit(*path[:2])).any()


def patched_by_hooks(model, pairs, edge):
    """Logits of the clean prompts with one edge's part of its reader's input exchanged, by the modules' own code."""
    clean, corrupt = model.trace(pairs.clean), model.trace(pairs.corrupt)
    restore = []

    def exchange(owner, name, function):
        original = getattr(owner, name)
        restore.append((owner, name, name in vars(owner), original))
        object.__setattr__(owner, name, function(original))

    reader = edge.reader
    layer = model.layers[reader.layer] if reader is not Terminal.LOGITS else None
    stream = stream_with(model, clean, edge.writer, output_of(corrupt, edge.writer), reader)
    if reader is Terminal.LOGITS:
        return model.unembed(model.final_norm(stream))[:, -1]
    if isinstance(reader, MLP):
        other = stream if layer.post else layer.feed_forward_norm(stream)
        exchange(layer.feed_forward, "forward", lambda original: lambda x: original(other))
    else:
        place = reader.head if isinstance(reader, Head) else reader.group
        side, others = "QKV".index(edge.port), []
        read = stream if layer.post else layer.attention_norm(stream)
        exchange(layer.attention, "finished", lambda original: lambda *parts: others.append(parts) or original(*parts))
        layer.attention.queries_keys_values(read)

        def with_other(original):
            def finished(*parts):
                parts = [part.clone() for part in parts]
                parts[side][:, place] = others[0][side][:, place]
                return original(*parts)

            return finished

        exchange(layer.attention, "finished", with_other)
    try:
        return model(pairs.clean)[:, -1]
    finally:
        for owner, name, was_own, original in reversed(restore):
            object.__delattr__(owner, name) if not was_own else object.__setattr__(owner, name, original)


def output_of(trace, node):
    if node is Terminal.EMBEDDING:
        return trace.embedding
    layer = trace.layers[node.layer]
    return layer.feed_forward_out if isinstance(node, MLP) else layer.head_outputs[:, node.head]


def stream_with(model, trace, writer, output, reader):
    """The stream before a reader's norm, added up writer by writer as the layers do, with one of them exchanged."""
    change = output - output_of(trace, writer)
    x = trace.embedding + (change if writer is Terminal.EMBEDDING else 0)
    for i, (layer, traced) in enumerate(zip(model.layers, trace.layers, strict=True)):
        if reader is not Terminal.LOGITS and reader.layer == i and not isinstance(reader, MLP):
            return x
        before = x
        out = traced.attention_out + (change if isinstance(writer, Head) and writer.layer == i else 0)
        x = x + layer.attention_out_norm(out)
        x = layer.attention_norm(x) if layer.post else x
        if isinstance(reader, MLP) and reader.layer == i:
            return before if layer.parallel else x
        if traced.feed_forward_out is not None:
            out = traced.feed_forward_out + (change if isinstance(writer, MLP) and writer.layer == i else 0)
            x = x + layer.feed_forward_out_norm(out)
            x = layer.feed_forward_norm(x) if layer.post else x
    return x
