"""Generated flows reach the counts of a connection that rules ask for, and miss them."""

from __future__ import annotations

import pytest

from backends.model.contract import Job
from backends.model.node import node_from_json
from harness.corpus.generate import generate_corpus
from translate.read import read_ruleset

NODE = node_from_json(
    """{"interfaces": {"eth0": ["192.0.2.2/24"], "pod0": ["10.1.0.1/24"]},
        "routes": [{"dst": "default", "via": "192.0.2.1", "dev": "eth0"}]}""",
    name="node",
)


@pytest.mark.parametrize(
    "asked",
    [
        "3:4 --connbytes-mode packets --connbytes-dir original",
        "2 --connbytes-mode packets --connbytes-dir reply",
        "5:5 --connbytes-mode packets --connbytes-dir both",
        "700:800 --connbytes-mode bytes --connbytes-dir original",
        "77:77 --connbytes-mode avgpkt --connbytes-dir both",
    ],
)
def test_a_hit_and_a_miss(asked: str) -> None:
    text = f"*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -m connbytes --connbytes {asked} -j DROP\nCOMMIT\n"
    made = generate_corpus(Job(rules=read_ruleset(text.encode(), name="rules"), node=NODE), seed=0)
    assert (made.doubts, made.alone, made.together) == ({}, 1, 0)
