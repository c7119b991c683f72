"""``-m cluster``: the connections that this node of a cluster handles."""

from __future__ import annotations

from typing import Final

from translate.ir import ClusterShare, Test
from translate.read.extensions.declaration import (
    Context,
    MatchExtension,
    Options,
    OptionSpec,
    parse_number,
)
from translate.read.spelling.errors import OptionError

__all__ = ["CLUSTER"]

_MOST_NODES: Final = 32  # XT_CLUSTER_NODES_MAX
_MOST: Final = (1 << 32) - 1


def _cluster(options: Options, _context: Context) -> tuple[Test, ...]:
    index, option = options.need("--cluster-total-nodes", "cluster")
    total = parse_number(option.arguments[0], _MOST_NODES, option=index)
    if not total:
        raise OptionError("a cluster has 1 to 32 nodes", option=index)
    node, mask = options.find("--cluster-local-node"), options.find("--cluster-local-nodemask")
    if (node is None) == (mask is None):
        raise OptionError("cluster needs either --cluster-local-node or --cluster-local-nodemask")
    index, option = node or mask or (0, option)
    # iptables-save prints masks above 32, which iptables itself does not read.
    nodes = parse_number(option.arguments[0], _MOST_NODES if node is not None else _MOST, option=index)
    if node is not None and nodes:
        nodes = 1 << nodes - 1
    if nodes >> total or not nodes:
        raise OptionError(f"the cluster has {total} nodes", option=index)
    seed_index, seed = options.need("--cluster-hash-seed", "cluster")
    return (
        ClusterShare(
            total=total,
            nodes=nodes,
            seed=parse_number(seed.arguments[0], _MOST, option=seed_index),
            negated=option.negated,
        ),
    )


CLUSTER: Final = MatchExtension(
    name="cluster",
    options=(
        OptionSpec(name="--cluster-total-nodes"),
        OptionSpec(name="--cluster-local-node", invertible=True),
        OptionSpec(name="--cluster-local-nodemask", invertible=True),
        OptionSpec(name="--cluster-hash-seed"),
    ),
    meaning=_cluster,
)
"""``-m cluster`` (``xt_cluster``)."""
