"""Attention of all heads, and of all layers down to the tokens, as one pattern.

A layer passes information on by its mean pattern A, and the residual stream by identity: A' = (A + I) / 2. Rollout
multiplies A' over layers. Flow takes A' as capacities of a graph whose nodes are the positions before and after each
layer, and computes the maximum flow from a query to a token. Source: Abnar & Zuidema 2020.
"""

import torch
from jaxtyping import Float, Int
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow
from torch import Tensor

from headstream.models.heads.head import mask_without, removed_heads
from headstream.models.transformer import Transformer

CAPACITY_UNIT = 2**30  # capacity 1: maximum_flow counts in 32-bit integers

Patterns = Float[Tensor, "layer q_pos k_pos"]


@torch.inference_mode()
def aggregate_attention(model: Transformer, tokens: Int[Tensor, "pos"]) -> dict[str, Patterns]:
    """Attention of all heads combined up to each layer, by method; rows sum to 1.

    mean: over the layer's own heads, NaN if it has none. rollout, flow: from the layer back to the tokens.
    """
    layers = model.trace(tokens[None].to(model.W_E.device)).layers
    there = [mask.bool() for mask in mask_without(model, removed_heads(model))]
    patterns = [layer.pattern[0, own].double() for layer, own in zip(layers, there, strict=True)]
    mean = torch.stack([own.mean(0) for own in patterns]).cpu()
    passed = with_residual(mean)
    flow = max_flow(passed)
    return {"mean": mean, "rollout": rollout(passed), "flow": flow / flow.sum(-1, keepdim=True)}


def with_residual(mean: Patterns) -> Patterns:
    """Mean patterns with the residual stream, A' = (A + I) / 2; a layer without heads leaves the stream as it is."""
    eye = torch.eye(mean.shape[-1], dtype=mean.dtype)
    return ((mean + eye) / 2).where(~mean.isnan(), eye)


def rollout(passed: Patterns) -> Patterns:
    """Attention rollout: products of A' from the first layer on, later layers on the left."""
    rolled = [passed[0]]
    for layer in passed[1:]:
        rolled.append(layer @ rolled[-1])
    return torch.stack(rolled)


def max_flow(passed: Patterns) -> Patterns:
    """Attention flow: the maximum from each query after each layer to each single token; A' for the first layer.

    Through two layers every path has one position in the middle, so that the flow is a sum of minima; from three on, an
    algorithm finds it. Capacities are rounded to multiples of 1 / `CAPACITY_UNIT`, which changes a flow by at most half
    of that for each edge of its minimum cut.

    Cost: a search for each layer from the third on, each query and each earlier key, growing with the layers below.
    """
    capacity = (passed * CAPACITY_UNIT).round().long()
    flows = capacity.clone()
    if len(passed) > 1:
        flows[1] = torch.stack([torch.minimum(query[:, None], capacity[0]).sum(0) for query in capacity[1]])
    for top in range(2, len(passed)):
        flows[top] = _max_flow_from_last(capacity[: top + 1])
    return flows.to(passed.dtype) / CAPACITY_UNIT


def _max_flow_from_last(capacity: Int[Tensor, "layer q_pos k_pos"]) -> Int[Tensor, "q_pos k_pos"]:
    """The maximum flows from the positions after the last of some layers."""
    n_layers, n = capacity.shape[:2]
    numbers = capacity.int().numpy(force=True)
    layers, queries, keys = numbers.nonzero()
    edges = (layers + 1) * n + queries, layers * n + keys
    graph = csr_array((numbers[layers, queries, keys], edges), shape=((n_layers + 1) * n,) * 2)
    flows = torch.zeros_like(capacity[0])
    for query in range(n):
        for key in range(query + 1):
            flows[query, key] = maximum_flow(graph, n_layers * n + query, key).flow_value
    return flows
