"""Print the rules that a kube-proxy would write for a cluster of the wanted shape."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

from backends.node import node_to_json
from harness.files import write_text
from harness.kuberules.rules import kube_proxy_rules
from harness.kuberules.shape import Shape, draw_cluster
from translate.errors import InputError
from translate.ir import Family

_EXAMPLE = """\
example:
  python -m harness.kuberules --services 200 --node-ports 20 --external-local 5 --node node.json > rules
  nfparity diff rules --node node.json --random 1000
"""


def main() -> int:
    """Print the rules; exit status 2 when the counts do not fit together."""
    parser = argparse.ArgumentParser(
        prog="python -m harness.kuberules",
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
    given = vars(parser.parse_args())
    node = given.pop("node")
    try:
        cluster = draw_cluster(Shape(**given))
        if node is not None:
            write_text(Path(node), node_to_json(cluster.node))
        write_text("-", kube_proxy_rules(cluster))
    except InputError as e:
        print(f"nfparity: {e}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
