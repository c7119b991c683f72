"""Matches in the tc program and in iptables-legacy, in one network namespace: what holds for each packet.

The packets are bytes that cross ``lo``, so they may be such as no corpus has. Each match is before a list of
``-m recent`` of its own, which then has the packet's source. The lists are emptied between two packets; other
states are kept.
"""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

from backends.tc_ebpf.dataplane import Dataplane
from tests.kernel.helpers.counted import answer_in_namespace, counts_of_iptables
from translate.bpf import emit
from translate.ir import Family
from translate.passes import lower
from translate.passes.inventory import Inventory
from translate.passes.recents import recent_lists
from translate.read import read_ipsets, read_ruleset, with_sets

__all__ = ["matched_in_both"]

_LEGACY: Final = {Family.IP: "iptables-legacy", Family.IP6: "ip6tables-legacy"}
_LIST: Final = "-m recent --set --name a{:03} --rsource"


def matched_in_both(
    matches: Sequence[str],
    packets: Sequence[bytes],
    family: Family,
    *,
    level: int = 2,
    hook: str = "PREROUTING",
    before: Sequence[Sequence[str]] = (),
    ipsets: str = "",
) -> list[tuple[list[bool], list[bool]]]:
    """Return which matches hold for each packet: in iptables-legacy, and in the tc program.

    ``matches`` are the words of rules of ``hook`` of table mangle before their target, and ``before`` has
    the rules that precede each of them. ``ipsets`` is ``ipset save`` text. Raises AssertionError with the
    error output of the process if a rule is refused.
    """
    sent = [packet.hex() for packet in packets]
    request = json.dumps((family.name, level, hook, matches, sent, before, ipsets))
    answer = answer_in_namespace(("-m", __name__), request)
    states: list[tuple[list[bool], list[bool]]] = [(a, b) for a, b in answer]
    assert len(states) == len(packets)
    return states


def _run(*words: str, text: str | None = None) -> str:
    return subprocess.run(words, input=text, text=True, check=True, capture_output=True).stdout


def _rules(hook: str, matches: Sequence[str], counts: Sequence[str], before: Sequence[Sequence[str]]) -> str:
    written = []
    for number, (words, count) in enumerate(zip(matches, counts, strict=True)):
        rules = (*(before[number] if before else ()), f"{words} {count}")
        written += [f"-A {hook} {rule}" for rule in rules]
    return "\n".join(("*mangle", *written, "COMMIT", ""))


def _counted(command: str) -> list[int]:
    """Return how many packets each of iptables' rules has counted."""
    return counts_of_iptables(_run(f"{command}-save", "-c", "-t", "mangle"))


def main() -> None:
    """Load both, send the packets of the request, and print the results."""
    name, level, hook, matches, packets, before, ipsets = json.load(sys.stdin)
    family, numbers = Family[name], range(len(matches))
    rules = _rules(hook, matches, [_LIST.format(n) for n in numbers], before)
    legacy = _rules(hook, matches, [f"-m comment --comment a{n}." for n in numbers], before)
    _run("ip", "link", "set", "lo", "up")
    if ipsets:
        _run("ipset", "restore", text=ipsets)
    _run(f"{_LEGACY[family]}-restore", text=legacy)
    ruleset = read_ruleset(rules.encode(), name="rules", family=family)
    lowered = lower(with_sets(ruleset, read_ipsets(ipsets.encode(), name="sets")), level=level)
    lists = [int(known.removeprefix("a")) for known in sorted(recent_lists(Inventory.of(lowered)))]
    program = Dataplane(emit(lowered))
    program.load()
    kind, to = (socket.AF_INET, "127.0.0.1") if family is Family.IP else (socket.AF_INET6, "::1")
    sender = socket.socket(kind, socket.SOCK_RAW, socket.IPPROTO_RAW)
    states, counted = [], _counted(_LEGACY[family])
    for packet in packets:
        program.map("recents").clear()
        sender.sendto(bytes.fromhex(packet), (to, 0))
        matched = {lists[struct.unpack_from("=I", key)[0]] for key, _ in program.map("recents").entries()}
        after = _counted(_LEGACY[family])
        states.append(([a > b for a, b in zip(after, counted, strict=True)], [n in matched for n in numbers]))
        counted = after
    print(json.dumps(states))


if __name__ == "__main__":
    main()
