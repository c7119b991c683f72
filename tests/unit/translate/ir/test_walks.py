"""The greatest number of rules that a packet can meet."""

from __future__ import annotations

import pytest

from backends.iptables.backend import IptablesBackend
from backends.model.contract import Job
from backends.model.node import Interface, Node
from backends.nftables.backend import NftablesBackend
from translate.errors import UnsupportedError
from translate.ir import Ruleset, longest_walk
from translate.read import read_ruleset


def read(text: str) -> Ruleset:
    return read_ruleset(
        f"*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n{text}COMMIT\n".encode(), name="rules"
    )


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("", 0),
        ("-A INPUT -j DROP\n-A FORWARD\n-A FORWARD\n", 2),
        (":a - [0:0]\n-A INPUT -j a\n-A INPUT -g a\n-A a -j DROP\n-A a -j DROP\n", 6),
        (":a - [0:0]\n:b - [0:0]\n-A INPUT -j a\n-A a -j b\n-A a -j b\n-A b\n-A b\n-A b\n", 9),
        (":a - [0:0]\n:b - [0:0]\n-A a -j b\n-A a -j b\n-A b\n", 0),
    ],
)
def test_a_walk(text: str, most: int) -> None:
    assert longest_walk(read(text))[0] == most


def test_chains_that_double_are_not_sent_to_a_kernel() -> None:
    chains = "".join(f":c{n} - [0:0]\n" for n in range(30))
    jumps = "".join(f"-A c{n} -p tcp -j c{n + 1}\n-A c{n} -j c{n + 1}\n" for n in range(29))
    ruleset = read(f"{chains}-A FORWARD -j c0\n{jumps}-A c29 -j ACCEPT\n")
    number, chain = longest_walk(ruleset)
    assert chain is not None
    assert (chain.name, number) == ("FORWARD", 1 + sum(2 * 2**n for n in range(29)) + 2**29)
    job = Job(rules=ruleset, node=Node((Interface("eth0"),)))
    for backend in (IptablesBackend("iptables-legacy"), IptablesBackend("iptables-nft"), NftablesBackend()):
        with pytest.raises(UnsupportedError) as caught:
            backend.open(job)
        assert {r.feature for r in caught.value.refusals} <= {"walk-length", "jump-depth"}


def test_a_line_is_as_long_as_it_is() -> None:
    lines = "".join(f":c{n} - [0:0]\n" for n in range(20_000))
    jumps = "".join(f"-A c{n} -j c{n + 1}\n" for n in range(19_999))
    assert longest_walk(read(f"{lines}-A INPUT -j c0\n{jumps}"))[0] == 20_000
