"""The table and lists of docs/support.md: matches and targets that each backend supports.

``python -m tests.lab.support`` prints them. The table summarises that of :mod:`tests.lab.options`, which has
a row for each option.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

import translate.bpf
import translate.nft
from nfparity.inputs.rules import load_rules
from tests.lab.options import SAMPLES, Status, Support, Use, options
from translate.read.extensions import MATCHES, TARGETS, UNMODELLED_MATCHES, UNMODELLED_TARGETS

__all__ = ["markdown", "refused"]


def markdown(table: Mapping[Use, Mapping[str, Support]]) -> str:
    """Return the table of the extensions, from the support of their options."""
    lines = [
        "| match or target | simulator, iptables-legacy, iptables-nft | nftables | tc-ebpf |",
        "| --- | --- | --- | --- |",
    ]
    for kind, registry in (
        ("-m", {**MATCHES, **UNMODELLED_MATCHES}),
        ("-j", {**TARGETS, **UNMODELLED_TARGETS}),
    ):
        for name in sorted(registry):
            rows = [cells for use, cells in table.items() if use[:2] == (kind, name)]
            cells = " | ".join(_cell([row[backend] for row in rows]) for backend in rows[0])
            lines.append(f"| `{kind} {name}` | {cells} |")
    return "\n".join(lines) + "\n"


def _cell(supports: list[Support]) -> str:
    there = [support for support in supports if support.status is not Status.GONE]
    if not there:
        return supports[0].cell()
    modelled = [support for support in there if support.status is not Status.UNMODELLED]
    if not modelled:
        return there[0].cell()
    features = ", ".join(sorted({feature for support in modelled for feature in support.features}))
    if not features:
        return "yes"
    if all(support.status is Status.REFUSED for support in modelled):
        return f"refused: {features}"
    return f"yes, but {features}"


def refused(features: Mapping[str, str]) -> str:
    """Return the features that a translation refuses, as a list in Markdown."""
    return "".join(f"- `{feature}`: {meaning}\n" for feature, meaning in sorted(features.items()))


def main() -> int:
    """Print the table, and the features that the translations refuse."""
    samples = [load_rules(path) for path in SAMPLES]
    lists = (refused(translate.nft.REFUSED), refused(translate.bpf.REFUSED))
    sys.stdout.write("\n".join((markdown(options(samples)), *lists)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
