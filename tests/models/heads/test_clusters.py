"""Clusters of heads against numbers on paper and merging by hand, and the order in which heads stand."""

import pytest
import torch

from headstream.models.heads.clusters import cluster_heads


def random_distances(n, seed):
    """Of points in a plane: some near, some far."""
    points = torch.randn(n, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (points[:, None] - points).norm(dim=-1)


def merge_by_hand(distances, cut):
    """Which pairs of heads are in one cluster."""
    clusters = [[head] for head in range(len(distances))]
    while len(clusters) > 1:
        gaps = {
            (i, j): distances[clusters[i]][:, clusters[j]].mean().item() for j in range(len(clusters)) for i in range(j)
        }
        i, j = min(gaps, key=gaps.get)
        if gaps[i, j] > cut:
            break
        clusters[i] += clusters.pop(j)
    together = torch.zeros_like(distances, dtype=torch.bool)
    for cluster in clusters:
        together[torch.tensor(cluster)[:, None], cluster] = True
    return together


def test_similar_heads_stand_next_to_each_other():
    places = torch.tensor([5.0, 1.0, 4.0, 0.0, 2.1, 3.1])  # on a line
    order = cluster_heads((places[:, None] - places).abs(), 1.0)["leaf"].argsort()
    assert places[order].tolist() in (sorted(places.tolist()), sorted(places.tolist(), reverse=True))


def test_clusters_on_paper():
    distances = torch.tensor([[0, 0.5, 0.1], [0.5, 0, 0.7], [0.1, 0.7, 0]], dtype=torch.float64)
    # 0 and 2 merge at 0.1, and with 1 at (0.5 + 0.7) / 2
    for cut, n_clusters in ((0.05, 3), (0.1, 2), (0.59, 2), (0.61, 1)):
        found = cluster_heads(distances, cut)
        assert found["cluster"].max() + 1 == n_clusters
        assert found["leaf"][0] == 1  # nearest to both others
    two = cluster_heads(distances, 0.3)["cluster"]
    assert two[0] == two[2] != two[1]


@pytest.mark.parametrize("cut", [0.2, 0.7, 1.5])
@pytest.mark.parametrize("seed", range(3))
def test_clusters_are_those_merged_by_hand(cut, seed):
    distances = random_distances(11, seed)
    found = cluster_heads(distances, cut)
    assert torch.equal(found["cluster"][:, None] == found["cluster"], merge_by_hand(distances, cut))
    in_order = found["cluster"][found["leaf"].argsort()]
    assert in_order[0] == 0
    assert set(in_order.diff().tolist()) <= {0, 1}  # neighbours, and numbered from the first leaf


@pytest.mark.parametrize("n", [0, 1])
def test_one_head_is_a_cluster(n):
    found = cluster_heads(torch.zeros(n, n), 0.5)
    assert found["cluster"].tolist() == found["leaf"].tolist() == [0] * n
