"""Print the rules that a kube-proxy would write for a drawn cluster, or write snapshots of its nodes."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

from backends.model.node import node_to_json
from harness.files.errors import CaptureError
from harness.files.userfiles import write_text
from tests.lab.kuberules.pernode import write_fleet
from tests.lab.kuberules.rules import kube_proxy_rules
from tests.lab.kuberules.shape import Shape, draw_cluster
from translate.errors import InputError
from translate.ir import Family

_EXAMPLE = """\
example:
  python -m tests.lab.kuberules --services 200 --node-ports 20 --external-local 5 --node node.json > rules
  nfparity diff rules --node node.json --random 1000
  python -m tests.lab.kuberules --services 20 --node-ports 4 --snapshots nodes/ --nodes 100
  nfparity assess nodes/ --known-only
"""


def main() -> int:
    """Print the rules; return 2 if the counts contradict each other."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.lab.kuberules",
        description=__doc__,
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for field in dataclasses.fields(Shape):
        name = f"--{field.name.replace('_', '-')}"
        if field.name == "family":
            parser.add_argument(name, type=Family, choices=tuple(Family), default=Family.IP)
        elif isinstance(field.default, bool) or field.default is None:
            parser.add_argument(name, action=argparse.BooleanOptionalAction, default=field.default)
        else:
            parser.add_argument(name, type=int, metavar="N", default=field.default)
    parser.add_argument("--node", metavar="FILE", help="write the node to run them on, as JSON")
    parser.add_argument(
        "--snapshots", metavar="DIR", help="write a snapshot of each node into this folder instead"
    )
    parser.add_argument("--nodes", type=int, metavar="N", default=3, help="the number of nodes; default: 3")
    options = vars(parser.parse_args())
    node, snapshots, nodes = options.pop("node"), options.pop("snapshots"), options.pop("nodes")
    try:
        cluster = draw_cluster(Shape(**options))
        if node is not None:
            write_text(Path(node), node_to_json(cluster.node))
        if snapshots is None:
            write_text("-", kube_proxy_rules(cluster))
        else:
            folder = Path(snapshots)
            folder.mkdir(exist_ok=True)
            for path in write_fleet(cluster, folder, nodes):
                print(path)
    except (InputError, CaptureError, OSError) as e:
        print(f"nfparity: {e}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
