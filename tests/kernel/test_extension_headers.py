"""Matches of IPv6's extension headers and their translations, on packets that no corpus has.

These are fragments, AH, and packets without a payload. No rule uses conntrack, which reassembles fragments.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from translate.ir import Family
from translate.nft import emit
from translate.passes import lower
from translate.read import read_ruleset

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
]

MATCHES = (
    *("frag", "frag --fragid 5", "frag ! --fragid 5:7", "frag --fragid 0:4294967294", "frag --fragid 7:5"),
    *("frag --fragres", "frag --fragfirst", "frag --fragmore", "frag --fraglast", "frag --fraglen 99"),
    *("frag ! --fragid 6 --fragres --fragfirst --fragmore", "hbh", "hbh --hbh-len 8", "hbh ! --hbh-len 8"),
    *("dst", "dst ! --dst-len 16", "dst --dst-len 16", "rt", "rt ! --rt-type 0"),
    *(
        f"ipv6header {no}--header {name} --soft"
        for name in ("frag", "hop,dst", "esp", "none", "prot", "frag,prot")
        for no in ("", "! ")
    ),
)
RULES = "\n".join(
    (
        "*mangle",
        *(f"-A PREROUTING -m {words} -m nfacct --nfacct-name a{n}." for n, words in enumerate(MATCHES)),
        "COMMIT",
        "",
    )
)

SCRIPT = """
import json, socket, struct, subprocess, sys
def run(*words, text=None):
    return subprocess.run(words, input=text, text=True, check=True, capture_output=True).stdout
rules, nft, packets = json.loads(sys.argv[1])
run("ip", "link", "set", "lo", "up")
run("ip6tables-legacy-restore", text=rules)
run("nft", "-f", "-", text=nft)
sender = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_RAW)
own = socket.inet_pton(socket.AF_INET6, "::1")
found = []
for first, body in packets:
    data = bytes.fromhex(body)
    sender.sendto(struct.pack("!IHBB", 6 << 28, len(data), first, 64) + own + own + data, ("::1", 0))
    found.append((run("ip6tables-legacy-save", "-c", "-t", "mangle"), run("nft", "list", "ruleset")))
print(json.dumps(found))
"""

HOP, ROUTING, FRAGMENT, ESP, AH, NONE, DESTINATION, UDP = 0, 43, 44, 50, 51, 59, 60, 17
DATAGRAM = "00050006000c0000" + "00000000"


def options(following: int, units: int = 0) -> str:
    size = 8 * (units + 1)
    return bytes((following, units, 0x1E if units else 1, size - 4)).ljust(size, b"\0").hex()


def routing(following: int, kind: int = 0) -> str:
    return f"{following:02x}00{kind:02x}0000000000"


def fragment(following: int, identification: int, where: int, reserved: int = 0) -> str:
    return f"{following:02x}{reserved:02x}{where:04x}{identification:08x}"


PACKETS = {
    "plain": (UDP, DATAGRAM),
    "atomic fragment": (FRAGMENT, fragment(UDP, 5, 0) + DATAGRAM),
    "first fragment": (FRAGMENT, fragment(UDP, 6, 1) + DATAGRAM + "00000000"),
    "later fragment": (FRAGMENT, fragment(UDP, 7, 0x101) + DATAGRAM + "00000000"),
    "last fragment": (FRAGMENT, fragment(UDP, 8, 0x100) + DATAGRAM),
    "reserved byte": (FRAGMENT, fragment(UDP, 4, 0, 1) + DATAGRAM),
    "reserved bits": (FRAGMENT, fragment(UDP, 4, 4) + DATAGRAM),
    "greatest identification": (FRAGMENT, fragment(UDP, 0xFFFFFFFF, 0) + DATAGRAM),
    "hop and destination": (HOP, options(DESTINATION) + options(UDP, 1) + DATAGRAM),
    "two destinations": (
        DESTINATION,
        options(ROUTING, 1) + routing(DESTINATION, 4) + options(UDP) + DATAGRAM,
    ),
    "fragment after hop": (HOP, options(FRAGMENT, 2) + fragment(UDP, 5, 1) + DATAGRAM + "00000000"),
    "destination in a fragment": (FRAGMENT, fragment(DESTINATION, 9, 0) + options(UDP) + DATAGRAM),
    "esp": (ESP, "00000001" + "00000000" * 3),
    "esp after options": (DESTINATION, options(ESP) + "00000001" + "00000000" * 3),
    "ah": (AH, f"{UDP:02x}04000000000001" + "00000000" * 4 + DATAGRAM),
    "nothing": (NONE, ""),
    "nothing after options": (HOP, options(NONE)),
    "routing header": (ROUTING, routing(UDP) + DATAGRAM),
}


@pytest.mark.parametrize("level", [0, 1, 2])
def test_the_kernel_finds_the_same_headers(level: int) -> None:
    legacy = RULES.replace(" -m nfacct", " -m comment").replace("--nfacct-name", "--comment")
    text = emit(lower(read_ruleset(RULES.encode(), name="rules", family=Family.IP6), level=level)).text
    asked = json.dumps((legacy, text, list(PACKETS.values())))
    done = subprocess.run(
        ["unshare", "-n", sys.executable, "-c", SCRIPT, asked], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    before = [0] * len(MATCHES)
    hit: set[str] = set()
    for packet, (saved, listed) in zip(PACKETS, json.loads(done.stdout), strict=True):
        legacy_counts = [int(n) for n in re.findall(r"^\[(\d+):\d+\] -A", saved, re.MULTILINE)]
        ours = {
            int(m[1]): int(m[2])
            for m in re.finditer(r"counter nfacct_a(\d+)\S* \{.*?packets (\d+)", listed, re.DOTALL)
        }
        # A rule that can never match has no counter.
        assert [ours.get(n, 0) for n in range(len(MATCHES))] == legacy_counts, packet
        counted = zip(MATCHES, before, legacy_counts, strict=True)
        hit |= {words for words, earlier, later in counted if later > earlier}
        before = legacy_counts
    assert set(MATCHES) - hit == {"frag --fragid 7:5"}
    assert len(PACKETS) not in before, "a match that holds for every packet"
