"""``-m string`` beside its translation, with texts at both ends of their places and of packets."""

from __future__ import annotations

import os
import struct

import pytest

from backends.tc_ebpf import TcEbpfBackend
from tests.kernel.helpers.availability import require
from tests.kernel.helpers.counted import counts_of_both
from tests.kernel.helpers.matchedtc import matched_in_both
from translate.ir import Family

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
]

LONG = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
MATCHES = (
    *("--string GET --from 40 --to 43", "! --string GET --from 40 --to 43", "--string GET --from 40 --to 42"),
    *(
        "--string attack --from 28 --to 34",
        "! --string attack --from 28 --to 36",
        "--string x --from 39 --to 40",
    ),
    *("--string GET --from 28 --to 31 --icase", "! --string gEt --from 40 --to 45 --icase"),
    *(
        '--hex-string "|45|" --to 1',
        '! --hex-string "|45 00|" --to 4',
        '--hex-string "G|4554 20|/" --from 28 --to 33',
    ),
    *('--hex-string "\\\\|41\\\\|" --from 28 --to 32', '--hex-string "|41||42|" --from 28 --to 31'),
    *(f"--string {LONG} --from 28 --to {28 + len(LONG)}", f"! --string {LONG[:40]} --from 27 --to 70"),
    *('--string "1/ [" --icase --from 28 --to 32', '--hex-string "1|0f|{" --icase --from 28 --to 31'),
    *("--string attack --from 28 --to 33", "! --string attack --from 28 --to 33"),
)
NEVER = {
    *("--string GET --from 40 --to 42", "--string attack --from 28 --to 33"),
    *('! --hex-string "|45 00|" --to 4', '--hex-string "|41||42|" --from 28 --to 31'),
}
SENDER, OWN = b"\x7f\0\0\2", b"\x7f\0\0\1"
"""The stack answers with errors, which do not have this sender."""


def whole(data: bytes, *, proto: int = 17) -> bytes:
    """Return a packet to 127.0.0.1; ``data`` begins at byte 28."""
    head = struct.pack("!BBHHHBBH", 0x45, 0, 28 + len(data), 5, 0, 64, proto, 0)
    return head + SENDER + OWN + struct.pack("!HHHH", 5, 53, 8 + len(data), 0) + data


PACKETS = tuple(
    map(
        whole,
        (
            *(b"", b"GET", b"get", b"gEt /", b"GET /index", b"attack", b"xattack", b"xxattack", b"xxxattack"),
            *(b"attac", b"attacK", b"0123456789 x", b"0123456789 GET", b"0123456789 xGET", b"0123456789 GE"),
            *(b"0123456789 xget", b"0123456789 xxGeT.", b"0123456789 xxxGET"),
            *(b"|41|", b"A|B", b"AB", b"1/ [", b"1/ {", b"1\x0f{", b"1\x0f[", b"1/\0["),
            *(
                LONG.encode(),
                LONG.encode()[:-1],
                LONG.encode()[:-1] + b"z",
                LONG.upper().encode(),
                b"." + LONG.encode(),
            ),
        ),
    )
)


@pytest.mark.parametrize("level", [pytest.param(0, marks=pytest.mark.slow), 2])
@pytest.mark.parametrize("algorithm", ["bm", pytest.param("kmp", marks=pytest.mark.slow)])
def test_the_kernel_finds_the_same_texts(algorithm: str, level: int) -> None:
    rules = [f"-s 127.0.0.2 -m string --algo {algorithm} {words}" for words in MATCHES]
    states = counts_of_both(rules, list(PACKETS), Family.IP, level=level)
    for packet, (legacy, ours) in zip(PACKETS, states, strict=True):
        different = {words: (a, b) for words, a, b in zip(MATCHES, legacy, ours, strict=True) if a != b}
        assert not different, packet
    final = dict(zip(MATCHES, states[-1][0], strict=True))
    assert {words for words, count in final.items() if not count} == NEVER
    assert len(PACKETS) not in [count for words, count in final.items() if words not in ALWAYS]


ALWAYS = {
    '--hex-string "|45|" --to 1',
    "! --string attack --from 28 --to 33",
}


def test_the_tc_program_finds_the_same_texts() -> None:
    require(TcEbpfBackend())
    rules = [f"-s 127.0.0.2 -m string --algo bm {words}" for words in MATCHES]
    states = matched_in_both(rules, list(PACKETS), Family.IP)
    for packet, (legacy, ours) in zip(PACKETS, states, strict=True):
        assert ours == legacy, packet
