"""Rules that iptables takes are read, rules that it refuses are refused, and what is read is what it loads.

Texts are random (:mod:`tests.lab.random.texts`), or those of iptables' own tests of its extensions: where
``IPTABLES_SOURCE`` names the folder of its source (``apt-get source iptables``), they are read in place.
iptables-legacy is the judge.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kernel.helpers.acceptance import Compared, comparison
from tests.lab.random.texts import random_text
from translate.ir import Family
from translate.read.extensions import MATCHES, TARGETS

SEEDS = range(200)
MANY = range(200, 200 + int(os.environ.get("NFPARITY_TEXTS", "1000")))

SOURCE = os.environ.get("IPTABLES_SOURCE", "")


@pytest.fixture(params=Family)
def compared(request: pytest.FixtureRequest) -> Iterator[Compared]:
    with comparison(request.param) as made:
        yield made


def check(compared: Compared, texts: Iterator[str]) -> None:
    for text in texts:
        compared.compare(text)
    print(dict(sorted(compared.became.items())))
    assert compared.disagreements == []
    assert compared.became["accepted, read"] > 0
    assert compared.became["refused, not read"] > 0


def test_random_texts(compared: Compared) -> None:
    check(compared, (random_text(seed, compared.family) for seed in SEEDS))


@pytest.mark.slow
def test_many_random_texts(compared: Compared) -> None:
    check(compared, (random_text(seed, compared.family) for seed in MANY))


@pytest.mark.skipif(not SOURCE, reason="IPTABLES_SOURCE names no folder with the source of iptables")
def test_iptables_own_tests(compared: Compared) -> None:
    check(compared, own_texts(Path(SOURCE) / "extensions", compared.family))


BUILT_IN = frozenset({"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"})
NAMED = {"ip": "libipt_", "ip6": "libip6t_"}


def own_texts(folder: Path, family: Family) -> Iterator[str]:
    """The rules of the ``.t`` files of every extension that is read, each in a text of its own."""
    supported = {*MATCHES, *TARGETS, "standard"}
    for path in sorted(
        (*folder.glob("libxt_*.t"), *folder.glob(f"{NAMED[family]}*.t"), folder / "iptables.t")
    ):
        if path.name != "iptables.t" and path.stem.partition("_")[2] not in supported:
            continue
        table, chains = "filter", [""]
        for line in path.read_text().splitlines():
            match line[:1]:
                case ":":
                    chains = line[1:].split(",")
                case "*":
                    table = line[1:]
                case "" | "#" | "@" | "%" | "^":
                    continue
                case _:
                    rule = line.partition(";")[0]
                    for chain in chains:
                        declared = "" if chain in BUILT_IN else f":{chain} - [0:0]\n"
                        yield f"*{table}\n{declared}-A {chain} {rule}\nCOMMIT\n"
