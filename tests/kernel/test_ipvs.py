"""A node in ipvs mode on the kernel's ip_vs: services answer as predicted, and every difference has a packet.

The project's own tests run where the kernel may have no ip_vs; ``tests/vm/test_ipvs.py`` runs this file on a
Debian kernel.
"""

from __future__ import annotations

from functools import cache

import pytest

from backends.ipvs.backend import IpvsBackend
from backends.model.ipvs import IpvsTable
from nfparity.assess.catalogue import ipvs_catalogue
from nfparity.assess.snapshots import AssessOptions, assess_snapshot
from nfparity.assess.summary import Summary
from nfparity.cli.main import main
from tests.kernel.helpers.ipvsnode import NODES
from translate.errors import MachineError


@cache
def missing() -> str:
    return IpvsBackend(IpvsTable(())).probe().reason


@cache
def assessed(name: str) -> Summary:
    if missing():
        pytest.skip(missing())
    chosen = NODES[name]
    options = AssessOptions(version=(1, 36), node=chosen.node, only=chosen.only)
    return assess_snapshot(chosen.snapshot(), options, progress=lambda *_: None)


@pytest.mark.parametrize("name", NODES)
def test_services_answer_as_predicted(name: str) -> None:
    (assessment,) = assessed(name).assessments
    assert assessment.flows
    assert not assessment.disputed, "\n".join(map(str, assessment.disputed))
    print(f"{name}: {assessment.flows} flows, all as predicted")


@pytest.mark.parametrize("name", NODES)
def test_every_difference_has_a_packet_and_an_entry(name: str) -> None:
    (assessment,) = assessed(name).assessments
    assert not assessment.unexplained, [finding.examples[0] for finding in assessment.unexplained]
    assert all(finding.examples for finding in assessment.findings)
    found = {finding.entry.id for finding in assessment.findings if finding.entry is not None}
    assert set(NODES[name].shows) <= found
    print(f"{name}: differences {', '.join(sorted(found))}")


def test_every_entry_is_shown_by_a_node() -> None:
    shown = {id_ for chosen in NODES.values() for id_ in chosen.shows}
    assert shown == {entry.id for entry in ipvs_catalogue()}


def test_without_ip_vs_the_message_says_how_to_go_on(capsys: pytest.CaptureFixture[str], tmp_path) -> None:
    if not missing():
        pytest.skip("this kernel has ip_vs")
    chosen = NODES["kube-proxy 1.26"]
    with pytest.raises(MachineError, match="python -m vm --kernel"):
        assess_snapshot(chosen.snapshot(), AssessOptions(node=chosen.node), progress=lambda *_: None)
    for name, text in chosen.files().items():
        (tmp_path / name).write_text(text)
    assert main(["assess", str(tmp_path)]) == 3
    assert "ip_vs" in capsys.readouterr().err
