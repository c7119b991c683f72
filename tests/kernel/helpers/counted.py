"""Matches and their translations together in one network namespace: counts after each packet.

The packets are bytes that cross ``lo``, so they may be such as no corpus has. Rules that use conntrack would
reassemble fragments before they are counted.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, Final

from translate.ir import Family
from translate.nft import emit
from translate.passes import lower
from translate.read import read_ruleset

__all__ = ["answer_in_namespace", "counts_of_both", "counts_of_iptables"]

_SCRIPT: Final = """
import json, socket, subprocess, sys
def run(*words, text=None):
    return subprocess.run(words, input=text, text=True, check=True, capture_output=True).stdout
six, rules, nft, packets = json.load(sys.stdin)
command = "ip6tables-legacy" if six else "iptables-legacy"
run("ip", "link", "set", "lo", "up")
run(f"{command}-restore", text=rules)
run("nft", "-f", "-", text=nft)
family, to = (socket.AF_INET6, "::1") if six else (socket.AF_INET, "127.0.0.1")
sender = socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_RAW)
states = []
for packet in packets:
    sender.sendto(bytes.fromhex(packet), (to, 0))
    states.append((run(f"{command}-save", "-c", "-t", "mangle"), run("nft", "list", "ruleset")))
print(json.dumps(states))
"""


def counts_of_both(
    matches: Sequence[str], packets: Sequence[bytes], family: Family, *, level: int, jumps: bool = False
) -> list[tuple[list[int], list[int]]]:
    """Return the packets that each match has counted after each packet: in iptables-legacy, and in nftables.

    ``matches`` are the words of rules of PREROUTING before their target. A rule that can never match has no
    counter in nftables, and counts nothing. With ``jumps`` each rule jumps to a chain that counts, so that
    maps can take the place of several rules.
    """
    counts = [f"-m nfacct --nfacct-name a{n}." for n in range(len(matches))]
    if jumps:
        chains = [f":c{n} - [0:0]" for n in range(len(matches))]
        written = [f"-A PREROUTING {words} -j c{n}" for n, words in enumerate(matches)]
        written += [f"-A c{n} {count}" for n, count in enumerate(counts)]
    else:
        chains = []
        written = [f"-A PREROUTING {words} {count}" for words, count in zip(matches, counts, strict=True)]
    rules = "\n".join(("*mangle", *chains, *written, "COMMIT", ""))
    legacy = rules.replace(" -m nfacct", " -m comment").replace("--nfacct-name", "--comment")
    text = emit(lower(read_ruleset(rules.encode(), name="rules", family=family), level=level)).text
    request = json.dumps((family is Family.IP6, legacy, text, [packet.hex() for packet in packets]))
    states = answer_in_namespace(("-c", _SCRIPT), request)
    assert len(states) == len(packets)
    return [(counts_of_iptables(saved), _of_nft(listed, len(matches))) for saved, listed in states]


def answer_in_namespace(program: Sequence[str], request: str) -> Any:
    """Return the JSON that a Python program prints in a network namespace of its own.

    Raises AssertionError with the error output of the program if it fails.
    """
    words = ("unshare", "-n", sys.executable, *program)
    done = subprocess.run(words, input=request, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def counts_of_iptables(saved: str) -> list[int]:
    """Return the counts of the rules that have the comment of a match, in the order of these."""
    pattern = re.compile(r"^\[(\d+):\d+\] -A .*--comment \"?a(\d+)\.", re.MULTILINE)
    counts = {int(match[2]): int(match[1]) for match in pattern.finditer(saved)}
    return [counts[n] for n in sorted(counts)]


def _of_nft(listed: str, number: int) -> list[int]:
    pattern = re.compile(r"counter nfacct_a(\d+)\S* \{.*?packets (\d+)", re.DOTALL)
    counts = {int(match[1]): int(match[2]) for match in pattern.finditer(listed)}
    return [counts.get(n, 0) for n in range(number)]
