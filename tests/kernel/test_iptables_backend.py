"""The two iptables as backends: probing, opening a job, refusing."""

from __future__ import annotations

import pytest

from backends.iptables.backend import IptablesBackend, IptablesLoader
from backends.model.contract import Job
from backends.model.outcome import Verdict
from backends.replay.session import open_session
from translate.errors import MachineError
from translate.read import read_ruleset


@pytest.fixture(scope="module")
def backend(backend_name: str) -> IptablesBackend:
    return IptablesBackend(backend_name)


def test_a_job_from_the_text_of_a_dump(backend, kind_node, kind_rules, flows):
    ruleset = read_ruleset(kind_rules.encode(), name="kind")
    with backend.open(Job(rules=ruleset, node=kind_node)) as session:
        (there,) = flows.run(session, flows.udp("10.244.0.5", "10.96.0.10", 53), "pod5")
        assert len(session.counters()) == kind_rules.count("\n-A ")
    assert (there.verdict, there.dnat) == (Verdict.FORWARD, True)


def test_probe_says_what_the_kernel_lacks(backend, monkeypatch):
    assert backend.probe().ok
    monkeypatch.setattr("backends.iptables.backend._PROBE", "*nosuchtable\nCOMMIT\n")
    found = backend.probe()
    assert not found.ok
    assert backend.name in found.reason


def test_rules_that_only_the_kernel_refuses(backend, kind_node):
    # Well-formed; but no such set is in the namespace.
    text = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -m set --match-set nobodys src -j DROP\nCOMMIT\n"
    with pytest.raises(MachineError, match="does not take the rules"):
        open_session(kind_node, IptablesLoader(backend.name, text)).__enter__()
