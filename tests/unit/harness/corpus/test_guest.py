"""The cases of ``tests/corpus/guest`` meet every match and target."""

from __future__ import annotations

from pathlib import Path

from backends.model.contract import Job
from harness.corpus.cases import read_cases
from harness.corpus.coverage import count_in_simulator
from translate.ir import Family
from translate.read.extensions import MATCHES, TARGETS

NOT_TRANSLATED = {
    "-m bpf",
    "-m cgroup",
    "-m connbytes",
    "-m connlabel",
    "-m connlimit",
    "-m dccp",
    "-m eui64",
    "-m frag",
    "-m helper",
    "-m owner",
    "-m policy",
    "-m socket",
    "-m realm",
    "-j SNPT",
    "-j DNPT",
    "-j HMARK",
    "-j NFQUEUE",
    "-j QUEUE",
    "-j SYNPROXY",
    "-j TEE",
    "-j IDLETIMER",
    "-j LED",
    "-j RATEEST",
    "-j SECMARK",
    "-j CONNSECMARK",
    "-j TPROXY",
}
"""Extensions that one of the translations refuses, so that a case with them compares nothing there.

``-m connlimit`` counts connections that are not answered yet differently in Linux 6.1.176.
"""

GUEST = Path(__file__).parents[3] / "corpus" / "guest"


def test_every_extension_is_met_by_a_packet() -> None:
    met: set[str] = set()
    families = set()
    for case in read_cases(GUEST):
        families.add(case.ruleset.family)
        counts = count_in_simulator(Job(rules=case.ruleset, node=case.node), case.flows)
        for (table, chain, index), (matched, _) in counts.items():
            if matched:
                rule = next(
                    c for t in case.ruleset.tables if t.name == table for c in t.chains if c.name == chain
                ).rules[index]
                met |= {f"-m {match.name}" for match in rule.matches}
                met |= {f"-j {rule.target.name}"} if rule.target is not None else set()
    every = {f"-m {name}" for name in MATCHES} | {f"-j {name}" for name in TARGETS}
    assert every - NOT_TRANSLATED <= met
    assert families == set(Family)
