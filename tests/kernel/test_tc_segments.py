"""Options of TCP in the tc program and in iptables-legacy: what matches find, and the bytes after targets."""

from __future__ import annotations

import struct

import pytest

from backends.iptables.backend import IptablesLoader
from backends.replay.loader import Loader
from backends.replay.worker import Worker
from backends.tc_ebpf import TcEbpfBackend
from backends.tc_ebpf.loader import TcEbpfLoader
from tests.kernel.helpers.availability import require
from tests.kernel.helpers.matchedtc import matched_in_both
from tests.kernel.helpers.tcnode import StartWith, node_of
from translate.bpf import emit
from translate.ir import Family, parse_address
from translate.passes import lower
from translate.read import read_ruleset

MSS, NOP, SCALE, SACK, STAMP = "020405b4", "01", "030307", "0402", "080a0000000100000000"
OPTIONS = (
    *("", MSS + NOP + SCALE, NOP * 3 + SCALE + "00" * 2, MSS + SACK + STAMP + NOP + SCALE, STAMP + SACK),
    *(SACK * 2, NOP * 2 + MSS + MSS.replace("05b4", "0064"), NOP + MSS + SCALE, "fd04abcd", "ff0300" + NOP),
    *(
        "0203" + "05" + NOP,
        "0200" + "05b4",
        "02" * 4,
        MSS.replace("05b4", "0000"),
        MSS.replace("05b4", "ffff"),
    ),
    *(
        "0000" + SACK,
        NOP * 39 + "04",
        NOP * 38 + SACK,
        "1328" + "00" * 38,
        "0300" + "02" + "04",
        "0806" + MSS[:4],
    ),
    *("22" + "06" + "01020304" + NOP * 2, MSS + "04ff" + NOP * 2, NOP * 36 + MSS),
)
"""Options in hexadecimal, whole or not, with four bytes each."""
MATCHES = (
    *(f"tcp {no}--tcp-option {kind}" for no in ("", "! ") for kind in (1, 2, 3, 4, 8, 253, 255, 200)),
    *(
        f"tcpmss {no}--mss {mss}"
        for no in ("", "! ")
        for mss in ("1460", "1459", "1:1460", "0", "65535", "100")
    ),
)
NEVER = {"tcp --tcp-option 200", "tcpmss --mss 1459", "tcpmss --mss 100"}
TARGETS = (
    *("TCPMSS --set-mss 1400", "TCPMSS --set-mss 1460", "TCPMSS --set-mss 5", "TCPMSS --set-mss 0"),
    *("TCPOPTSTRIP --strip-options mss", "TCPOPTSTRIP --strip-options sack-permitted,timestamp,wscale"),
    *("TCPOPTSTRIP --strip-options 2,3,4,5,8,19,34,253,254", "TCPOPTSTRIP --strip-options md5"),
)
CLIENT = {Family.IP: "10.1.0.1", Family.IP6: "fd00::1:1"}
SERVER = {Family.IP: "192.0.2.200", Family.IP6: "2001:db8::200"}
OWN = {Family.IP: "127.0.0.1", Family.IP6: "::1"}


@pytest.fixture(scope="module", autouse=True)
def _needs_bcc() -> None:
    require(TcEbpfBackend())


def summed(data: bytes) -> bytes:
    total = sum(int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2))
    return (0xFFFF - total % 0xFFFF).to_bytes(2, "big")


def whole(family: Family, src: str, dst: str, options: str, *, dport: int, data: bytes = b"") -> bytes:
    """A SYN with these options."""
    addresses = b"".join(parse_address(family, a).to_bytes(family.bits // 8, "big") for a in (src, dst))
    words = bytes.fromhex(options)
    segment = struct.pack("!HHIIBBHHH", 5000, dport, 7, 0, (20 + len(words)) << 2, 2, 99, 0, 0) + words + data
    padding = b"\0" * (len(segment) % 2)
    check = summed(addresses + struct.pack("!II", len(segment), 6) + segment + padding)
    segment = segment[:16] + check + segment[18:]
    if family is Family.IP6:
        return struct.pack("!IHBB", 6 << 28, len(segment), 6, 64) + addresses + segment
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(segment), 1, 0, 64, 6, 0)
    return head[:10] + summed(head + addresses) + addresses + segment


@pytest.mark.parametrize("family", [Family.IP, pytest.param(Family.IP6, marks=pytest.mark.slow)])
def test_a_match_finds_the_same_options(family: Family) -> None:
    own = OWN[family]
    packets = [whole(family, own, own, options, dport=9) for options in OPTIONS]
    rules = [f"-p tcp --dport 9 -m {words}" for words in MATCHES]
    states = matched_in_both(rules, packets, family)
    found = set()
    for options, (legacy, ours) in zip(OPTIONS, states, strict=True):
        different = [words for words, a, b in zip(MATCHES, legacy, ours, strict=True) if a != b]
        assert different == [], options
        found |= {words for words, holds in zip(MATCHES, legacy, strict=True) if holds}
    assert set(MATCHES) - found == NEVER


def left(loader: Loader, family: Family) -> dict[tuple[str, str], str]:
    """The packets that leave, by the target of their rule and their options."""
    found = {}
    with Worker(StartWith(node_of(family), loader)) as worker:
        for number, target in enumerate(TARGETS):
            for options in OPTIONS:
                packet = whole(
                    family, CLIENT[family], SERVER[family], options, dport=100 + number, data=b"data"
                )
                (there,) = worker.ask(("send", "pod0", [packet]))
                found[target, options] = there.hex()
    return found


@pytest.mark.parametrize("family", Family)
def test_a_target_leaves_the_same_bytes(family: Family) -> None:
    """The segments have data: no MSS is added to them."""
    rules = [
        f"-A FORWARD -p tcp --dport {100 + number} --tcp-flags SYN,RST SYN -j {target}"
        for number, target in enumerate(TARGETS)
    ]
    text = "\n".join(("*mangle", ":FORWARD ACCEPT [0:0]", *rules, "COMMIT", ""))
    program = emit(lower(read_ruleset(text.encode(), name="rules", family=family), level=2))
    expected = left(IptablesLoader("iptables-legacy", text, family), family)
    found = left(TcEbpfLoader(program), family)
    assert {name: (expected[name], found[name]) for name in expected if expected[name] != found[name]} == {}
    assert len(set(expected.values())) > len(OPTIONS) * 3
