"""Faults shown by the instructions that nft makes of them, on samples of packets.

A kernel under test gets only packets that a testbed can send: none of DCCP, none from a control group, no
IPv6 packet with a flow label. The interpreter of :mod:`tests.lab.bytecode` runs nft's instructions on
packets of any kind, and compares them with the meaning of the rule. A fault that changes the result for one
of them is shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tests.lab.bytecode.check import check
from tests.lab.bytecode.compiler import Nft, NftError
from tests.lab.bytecode.listing import Listing
from tests.lab.mutation.fault import Fault
from translate.ir import HashLimit, Limit, Program, Rule

__all__ = ["planted_apart", "shown_by_bucket", "shown_by_instructions"]

_SEEDS: Final = 3
_CALL: Final = re.compile(r"\b(?:jump|goto) (\S+)")


@dataclass(frozen=True, slots=True)
class _PlantingNft(Nft):
    """An nft that compiles each text with the fault in it."""

    fault: Fault | None = None

    def compiled(self, text: str) -> Listing:
        """Return what nft makes of the text, with the fault if the text has its line."""
        changed = None if self.fault is None else planted_apart(text, self.fault)
        return Nft.compiled(self, text if changed is None else changed)


def shown_by_instructions(program: Program, fault: Fault) -> str | None:
    """Return the packet that shows the fault and the results, or None. Needs root, for nft."""
    nft = _PlantingNft("nft", fault=fault)
    for seed in range(_SEEDS):
        try:
            differences = check([program], [nft], seed=seed).differences
        except NftError:
            return None
        if differences:
            return differences[0].render()
    return None


def shown_by_bucket(rules: Iterable[Rule], fault: Fault) -> str | None:
    """Return the token bucket that a fault gives to a limit, or None if it is that of a rule.

    A rate of three tokens a day takes longer to measure than a test may. The bucket in the text is instead
    compared with the arithmetic of the kernel's ``-m limit``, of which the simulator has the result.
    """
    wanted = {(t.interval, t.capacity) for r in rules for t in r.tests if isinstance(t, Limit | HashLimit)}
    before, after = _bucket(fault.place.text), _bucket(fault.after or "")
    if before not in wanted or after is None or after in wanted:
        return None
    return f"a token each {after[0]} ns, at most {after[1]} ns"


def _bucket(text: str) -> tuple[int, int] | None:
    """Return the time in nanoseconds for a token, and for the whole burst."""
    match = _RATE.search(text)
    if match is None or _UNITS[match[2]] % int(match[1]):
        return None if match is None else (-int(match[1]), 0)
    interval = _UNITS[match[2]] // int(match[1])
    return interval, interval * int(match[3])


_RATE: Final = re.compile(r"rate (?:over )?(\d+)/(\w+) burst (\d+) packets")
_UNITS: Final = {
    "second": 10**9,
    "minute": 60 * 10**9,
    "hour": 3600 * 10**9,
    "day": 86400 * 10**9,
    "week": 7 * 86400 * 10**9,
}


def planted_apart(text: str, fault: Fault) -> str | None:
    """Return a text of :func:`~tests.lab.bytecode.check.check` with the fault; None if the line is not in it.

    The names of chains in such a text differ from those in the fault.
    """
    lines = text.split("\n")
    wanted = _unnamed(fault.place.text)
    places = [number for number, line in enumerate(lines) if _unnamed(line) == wanted]
    if len(places) != 1:
        return None
    (place,) = places
    if fault.after is None:
        return "\n".join((*lines[:place], *lines[place + 1 :]))
    after = fault.after
    for here, there in zip(_CALL.findall(fault.place.text), _CALL.findall(lines[place]), strict=True):
        if after.count(here) != 1:
            return None
        after = after.replace(here, there)
    return "\n".join((*lines[:place], after, *lines[place + 1 :]))


def _unnamed(line: str) -> str:
    return _CALL.sub("call", line.strip())
