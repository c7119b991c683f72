"""The table and lists of docs/support.md: matches and targets that each backend supports.

``python -m tests.lab.support`` reads the ruleset that has every option of every extension, lets each
backend translate it, and counts whose rules were refused. The names come from the reader's
registries, so a new extension without a sample rule is a failing test, not a missing row.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import translate.bpf
import translate.nft
from backends.model.contract import Job
from backends.model.node import Interface, Node
from backends.simulator import SimulatorBackend
from nfparity.inputs.rules import load_rules
from translate.errors import Refusal, UnsupportedError
from translate.ir import Rule, Ruleset
from translate.passes import lower
from translate.read.extensions import MATCHES, TARGETS

__all__ = ["SAMPLES", "markdown", "refused", "support"]

SAMPLES: Final = (
    "tests/corpus/rulesets/every-option/ip.rules",
    "tests/corpus/rulesets/every-option/ip6.rules",
    "tests/corpus/rulesets/every-option/set.rules",
    "tests/corpus/rulesets/every-option/nfacct.rules",
    "tests/corpus/rulesets/every-option/queue.rules",
    "tests/corpus/rulesets/every-option/refused.rules",
    "tests/corpus/rulesets/every-option/counters.rules",
)
"""Rules that together use every option, and rules that nftables refuses; relative to the project's root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """The result of one backend for the sample rules that use one extension."""

    rules: int
    refused: tuple[Refusal, ...]

    def cell(self) -> str:
        """Return the table's cell: yes, the features refused, or no."""
        if not self.refused:
            return "yes"
        features = ", ".join(sorted({r.feature for r in self.refused}))
        lines = {r.origin.place for r in self.refused}
        return f"refused: {features}" if len(lines) >= self.rules else f"yes, but {features}"


def _simulator(ruleset: Ruleset) -> None:
    with SimulatorBackend().open(Job(rules=ruleset, node=Node((Interface("eth0"),)))):
        pass


_BACKENDS: Final[Mapping[str, Callable[[Ruleset], object]]] = {
    "simulator": _simulator,
    "nftables": lambda ruleset: translate.nft.emit(lower(ruleset, level=0)),
    "tc-ebpf": lambda ruleset: translate.bpf.emit(lower(ruleset, level=0)),
}


def support(samples: Sequence[Ruleset]) -> dict[tuple[str, str], dict[str, Support]]:
    """Return the support of each (kind, name) of the registries by each backend.

    ``kind`` is ``match`` or ``target``. Raises KeyError for an extension without a sample rule.
    """
    refusals = {
        name: [r for file in samples for r in _refusals(ask, file)] for name, ask in _BACKENDS.items()
    }
    users: dict[tuple[str, str], list[Rule]] = {}
    for rule in (rule for file in samples for rule in _rules(file)):
        for match in rule.matches:
            users.setdefault(("match", match.name), []).append(rule)
        if rule.target is not None:
            users.setdefault(("target", rule.target.name), []).append(rule)
    keys = [("match", n) for n in sorted(MATCHES)] + [("target", n) for n in sorted(TARGETS)]
    table: dict[tuple[str, str], dict[str, Support]] = {key: {} for key in keys}
    for name, refused in refusals.items():
        lost: set[str] = set()
        for key, cells in table.items():
            # A rule that is refused for its match says nothing of its target.
            refused_rules = [r for r in users[key] if r.origin.place not in lost]
            blamed = [r for r in refused_rules if key[0] == "match" or not r.matches]
            cells[name] = _support(refused_rules, [r for r in refused if r.origin.place in _places(blamed)])
            if key[0] == "match" and cells[name].cell().startswith("refused"):
                lost |= {rule.origin.place for rule in users[key]}
    return table


def _support(users: Sequence[Rule], refusals: Sequence[Refusal]) -> Support:
    lines = _places(users)
    refused = tuple(r for r in refusals if r.origin.place in lines)
    return Support(rules=len(lines), refused=refused)


def _places(rules: Sequence[Rule]) -> set[str]:
    return {rule.origin.place for rule in rules}


def _refusals(ask: Callable[[Ruleset], object], ruleset: Ruleset) -> tuple[Refusal, ...]:
    try:
        ask(ruleset)
    except UnsupportedError as e:
        return e.refusals
    return ()


def _rules(ruleset: Ruleset) -> Iterator[Rule]:
    for table in ruleset.tables:
        for chain in table.chains:
            yield from chain.rules


def markdown(table: Mapping[tuple[str, str], Mapping[str, Support]]) -> str:
    """Return the table."""
    lines = [
        "| match or target | simulator, iptables-legacy, iptables-nft | nftables | tc-ebpf |",
        "| --- | --- | --- | --- |",
    ]
    for (kind, name), by_backend in table.items():
        cells = " | ".join(cell.cell() for cell in by_backend.values())
        lines.append(f"| `{'-m' if kind == 'match' else '-j'} {name}` | {cells} |")
    return "\n".join(lines) + "\n"


def refused(features: Mapping[str, str]) -> str:
    """Return the list of features that a translation cannot express, as named in refusals."""
    return "".join(f"- `{feature}`: {meaning}\n" for feature, meaning in sorted(features.items()))


def main() -> int:
    """Print the table, and the features that the translations refuse."""
    samples = [load_rules(path) for path in SAMPLES]
    lists = (refused(translate.nft.REFUSED), refused(translate.bpf.REFUSED))
    sys.stdout.write("\n".join((markdown(support(samples)), *lists)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
