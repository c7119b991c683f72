"""The table of docs/options.md: the support of every option of every match and target in each backend.

``python -m tests.lab.options`` translates the ruleset that has every option of every extension, and counts,
for each option, the rules that each backend refuses. A rule may have several options; its refusal counts
against the option of which the fewest rules are accepted. The names come from the reader's registries, so a
new option without a sample rule makes a test fail.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple

import translate.bpf
import translate.nft
from backends.model.contract import Job
from backends.model.node import Interface, Node
from backends.simulator import SimulatorBackend
from nfparity.inputs.rules import load_rules
from translate.errors import Refusal, UnsupportedError
from translate.ir import Program, Rule, Ruleset
from translate.passes import lower
from translate.read.extensions import MATCHES, TARGETS, UNMODELLED_MATCHES, UNMODELLED_TARGETS
from translate.read.extensions.declaration import MatchExtension, TargetExtension

__all__ = ["SAMPLES", "Status", "Support", "Use", "markdown", "options", "shares"]


SAMPLES: Final = (
    "tests/corpus/rulesets/every-option/ip.rules",
    "tests/corpus/rulesets/every-option/ip6.rules",
    "tests/corpus/rulesets/every-option/set.rules",
    "tests/corpus/rulesets/every-option/nfacct.rules",
    "tests/corpus/rulesets/every-option/queue.rules",
    "tests/corpus/rulesets/every-option/queue-target.rules",
    "tests/corpus/rulesets/every-option/refused.rules",
    "tests/corpus/rulesets/every-option/counters.rules",
    "tests/corpus/rulesets/every-option/segments6.rules",
    "tests/corpus/rulesets/every-option/options6.rules",
    "tests/corpus/rulesets/every-option/cgroups.rules",
    "tests/corpus/rulesets/every-option/secmark.rules",
)
"""Rules that together use every option, also those that nftables refuses; relative to the project's root."""


def _simulator(ruleset: Ruleset) -> None:
    with SimulatorBackend().open(Job(rules=ruleset, node=Node((Interface("eth0"),)))):
        pass


def _lowered(ruleset: Ruleset) -> Program:
    """Return the Program of one rule, as if another rule needed conntrack; otherwise nat would be left
    out."""
    return replace(lower(ruleset, level=0), tracked=True)


BACKENDS: Final[Mapping[str, Callable[[Ruleset], object]]] = {
    "simulator": _simulator,
    "nftables": lambda ruleset: translate.nft.emit(_lowered(ruleset)),
    "tc-ebpf": lambda ruleset: translate.bpf.emit(_lowered(ruleset)),
}
"""The translations, and the simulator for all backends that take rules as they were read."""


_VERDICTS: Final = ("ACCEPT", "DROP", "RETURN")
"""Targets that every backend has: a refusal of their rule has another reason."""


class Use(NamedTuple):
    """An option of an extension; ``option`` is empty for an extension that was given none."""

    kind: str
    """``-m`` or ``-j``."""
    extension: str
    option: str


class Status(StrEnum):
    """The result of a backend for the rules that have an option."""

    EXACT = "yes"
    """Every sample rule is translated."""
    CONDITION = "yes, but"
    """Some are refused."""
    REFUSED = "refused"
    """All are refused."""
    UNMODELLED = "not simulated"
    """The option is read and kept as spelled: exact on kernels."""
    GONE = "no kernel"
    """No supported kernel has it."""


@dataclass(frozen=True, slots=True)
class Support:
    """The support of one option in one backend, with the features of the refusals.

    For an option that no kernel has, ``features`` is the release of Linux that first lacked it.
    """

    status: Status
    features: tuple[str, ...] = ()

    def cell(self) -> str:
        """Return the table's cell."""
        match self.status:
            case Status.CONDITION:
                return f"{self.status} {', '.join(self.features)}"
            case Status.REFUSED:
                return f"{self.status}: {', '.join(self.features)}"
            case Status.GONE:
                return f"{self.status} since {', '.join(self.features)}"
            case _:
                return self.status.value


def options(samples: Sequence[Ruleset]) -> dict[Use, dict[str, Support]]:
    """Return the support of every option, by backend.

    Raises KeyError for a modelled option without a sample rule.
    """
    users: dict[Use, set[str]] = defaultdict(set)
    uses: dict[str, tuple[Use, ...]] = {}
    for rule in (rule for sample in samples for rule in _rules(sample)):
        uses[rule.origin.place] = tuple(_uses(rule))
        for use in uses[rule.origin.place]:
            users[use].add(rule.origin.place)
    table: dict[Use, dict[str, Support]] = {}
    declared = _declared(users)
    for use, unmodelled in declared.items():
        if unmodelled is None and not users[use]:
            raise KeyError(f"no sample rule has {' '.join(use)}")
        table[use] = {} if unmodelled is None else unmodelled.support()
    for backend, ask in BACKENDS.items():
        refused: dict[str, set[str]] = defaultdict(set)
        for refusal in (r for sample in samples for r in refusals(ask, sample)):
            refused[refusal.origin.place].add(refusal.feature)
        blamed = _blamed(refused, uses, users)
        for use, unmodelled in declared.items():
            if unmodelled is None:
                accepted = bool(users[use] - refused.keys())
                table[use][backend] = _support(accepted, blamed.get(use, set()))
    return table


def refusals(ask: Callable[[Ruleset], object], ruleset: Ruleset) -> tuple[Refusal, ...]:
    """Return the refusals of a ruleset by a function that raises UnsupportedError for them."""
    try:
        ask(ruleset)
    except UnsupportedError as e:
        return e.refusals
    return ()


def _support(accepted: bool, features: set[str]) -> Support:
    if not features:
        return Support(Status.EXACT)
    return Support(Status.CONDITION if accepted else Status.REFUSED, tuple(sorted(features)))


def _blamed(
    refused: Mapping[str, set[str]], uses: Mapping[str, tuple[Use, ...]], users: Mapping[Use, set[str]]
) -> dict[Use, set[str]]:
    """Return the options that cause refusals, each with the features that were refused."""
    blamed: dict[Use, set[str]] = defaultdict(set)
    share = {use: len(rules - refused.keys()) / len(rules) for use, rules in users.items() if rules}
    for place, features in refused.items():
        candidates = [use for use in uses[place] if use.extension not in _VERDICTS]
        least = min((share[use] for use in candidates), default=0.0)
        for use in candidates:
            if share[use] == least:
                blamed[use] |= features
    return blamed


@dataclass(frozen=True, slots=True)
class _Unmodelled:
    """An option that is not modelled: the feature of refusals, and the Linux that first lacked it."""

    kind: str
    removed_in: str

    def support(self) -> dict[str, Support]:
        if self.removed_in:
            return dict.fromkeys(BACKENDS, Support(Status.GONE, (self.removed_in,)))
        refused = dict.fromkeys(BACKENDS, Support(Status.REFUSED, (self.kind,)))
        return {**refused, "simulator": Support(Status.UNMODELLED)}


def _declared(users: Mapping[Use, set[str]]) -> dict[Use, _Unmodelled | None]:
    """Return every option that is read, with None if its meaning is modelled.

    An extension has a row without an option if it has no options, or if a sample rule gives it none.
    """
    declared: dict[Use, _Unmodelled | None] = {}
    for kind, modelled, others in (
        ("-m", MATCHES, UNMODELLED_MATCHES),
        ("-j", TARGETS, UNMODELLED_TARGETS),
    ):
        extensions: dict[str, MatchExtension | TargetExtension] = {**modelled, **others}
        for name, extension in sorted(extensions.items()):
            bare = Use(kind, name, "")
            removed_in = extension.removed_in if isinstance(extension, TargetExtension) else ""
            whole = None if name in modelled else _Unmodelled(extension.kind, removed_in)
            if not extension.options or users.get(bare):
                declared[bare] = whole
            for spec in extension.options:
                unmodelled = None if spec.refused is None else _Unmodelled(spec.kind, spec.removed_in)
                declared[Use(kind, name, spec.name)] = whole or unmodelled
    return declared


def _uses(rule: Rule) -> Iterator[Use]:
    spelled = [("-m", match) for match in rule.matches]
    if rule.target is not None:
        spelled.append(("-j", rule.target))
    for kind, extension in spelled:
        if not extension.options:
            yield Use(kind, extension.name, "")
        for option in extension.options:
            yield Use(kind, extension.name, option.name)


def _rules(ruleset: Ruleset) -> Iterator[Rule]:
    for table in ruleset.tables:
        for chain in table.chains:
            yield from chain.rules


def shares(table: Mapping[Use, Mapping[str, Support]]) -> dict[str, dict[Status, int]]:
    """Return how many options have each status, by backend."""
    counts: dict[str, dict[Status, int]] = {name: dict.fromkeys(Status, 0) for name in BACKENDS}
    for cells in table.values():
        for name, support in cells.items():
            counts[name][support.status] += 1
    return counts


def markdown(table: Mapping[Use, Mapping[str, Support]]) -> str:
    """Return the counts, with shares of the options that a kernel has, and the table."""
    counts = shares(table)
    names = {"simulator": "simulator, iptables-legacy, iptables-nft"}
    statuses = [status for status in Status if status is not Status.GONE]
    lines = ["| " + " | ".join(("options", *statuses)) + " |", "| --- " * (len(statuses) + 1) + "|"]
    for backend, by_status in counts.items():
        present = len(table) - by_status[Status.GONE]
        cells = (f"{by_status[status]} ({by_status[status] / present:.0%})" for status in statuses)
        lines.append(f"| {names.get(backend, backend)} | {' | '.join(cells)} |")
    lines += ["", "| match or target | option | " + " | ".join(names.get(b, b) for b in BACKENDS) + " |"]
    lines.append("| --- " * (len(BACKENDS) + 2) + "|")
    for use, by_backend in table.items():
        option = f"`{use.option}`" if use.option else "(none)"
        row = " | ".join(support.cell() for support in by_backend.values())
        lines.append(f"| `{use.kind} {use.extension}` | {option} | {row} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Print the table."""
    sys.stdout.write(markdown(options([load_rules(path) for path in SAMPLES])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
