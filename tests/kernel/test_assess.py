"""Differences of kube-proxy's modes on the running kernel, for rules of a real kube-proxy and made ones."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from contextlib import suppress
from functools import cache
from io import StringIO
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from nfparity.assess.assessing import Assessment
from nfparity.assess.catalogue import Decided, catalogue
from nfparity.assess.snapshots import AssessOptions, assess_snapshot
from nfparity.capture.anonymise.addresses import is_well_known
from nfparity.capture.anonymise.snapshot import anonymise
from nfparity.cli.main import main
from nfparity.report.assessjson import assessment_json
from nfparity.report.assessment import print_assessment
from nfparity.report.assesssarif import assessment_sarif
from nfparity.snapshot import load_snapshot
from tests.kernel.helpers.assessed import ALWAYS, HERE, MADE, REAL, snapshot_files


class Told(NamedTuple):
    """A report in each of its forms."""

    json: str
    sarif: str
    people: str


LEAKS = {
    "an address of the service range that no service has": True,
    "an undefined port of a ClusterIP": False,
    "a ClusterIP, without a port": False,
}
"""Leaks on a real node in iptables mode, and whether they remain with Kubernetes 1.30."""

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="kernel backends need root"),
]


def test_every_difference_is_shown_here_or_on_made_rules_or_out_of_reach() -> None:
    reachable = {one.id for one in catalogue() if one.decided is not Decided.OUT_OF_REACH}
    by_packets = {one.id for one in catalogue() if one.decided is Decided.REPLAY}
    assert by_packets <= HERE.keys() | MADE.keys() <= reachable  # facts: tests/unit, test_static_findings.py
    assert all(one.reason for one in catalogue() if one.id not in reachable)


def words(*more: str) -> list[str]:
    rules, node = str(REAL / "rules.iptables-save"), str(REAL / "dataplane.json")
    return ["assess", rules, "--node", node, *more]


def assessed(capsys: pytest.CaptureFixture[str], *more: str) -> Any:
    assert main([*words(*more), "--format", "json"]) == 1
    (family,) = json.loads(capsys.readouterr().out)["families"]
    return family


def found(family: Any) -> dict[str, set[str]]:
    subjects: dict[str, set[str]] = {}
    for one in family["findings"]:
        subjects.setdefault(one["id"], set()).add(one["affects"])
    return subjects


def given(version: str = "1.30") -> tuple[str, ...]:
    return ("--against", str(REAL / "realistic.nft"), "--kubernetes", version)


@pytest.mark.parametrize(
    "flows", [("--known-only",), pytest.param((), marks=pytest.mark.slow)], ids=["known", "corpus"]
)
def test_a_real_kube_proxys_rules_show_what_they_can_and_nothing_else(
    flows: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    family = assessed(capsys, *given(), *flows)
    assert found(family) == HERE
    assert not family["unexplained"]
    assert not family["disputed"]
    assert {leak["kind"]: leak["remains"] for leak in family["leaks"]} == LEAKS
    for finding in family["findings"]:
        assert finding["examples"], finding["affects"]
        assert all(line["text"].startswith("-A KUBE-") for line in finding["lines"])
        assert finding["lines"]


def test_the_rules_made_for_its_version_show_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    family = assessed(capsys, "--kubernetes", "1.30", "--known-only")
    assert found(family) == HERE
    assert not family["unexplained"]


def test_an_example_is_reproduced_alone(capsys: pytest.CaptureFixture[str]) -> None:
    family = assessed(capsys, *given(), "--only", "K24/edge/local-only:quic/203.0.113.30/node")
    assert found(family) == {"K24": {"edge/local-only:quic"}}
    assert family["flows"] == 1


def test_tables_of_iptables_nft_beside_the_given_ones_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listing = tmp_path / "all.nft"
    chain = 'chain FORWARD { type filter hook forward priority 0; xt match "comment" drop; }'
    dropping = f"table ip filter {{ {chain} }}\n"
    listing.write_text(dropping + (REAL / "realistic.nft").read_text())
    family = assessed(capsys, "--against", str(listing), "--only", "K05/forwarded/inside")
    assert found(family) == {"K05": {"every forwarded packet"}}
    assert any("left out" in one for one in family["assumed"])


def test_a_flow_of_no_such_name_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words(*given()), "--known-only", "--only", "nobody"]) == 2
    assert "'nobody'" in capsys.readouterr().err


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Told, Told]:
    """Return the findings of a snapshot, and of the same snapshot anonymised."""
    plain, hidden = tmp_path_factory.mktemp("plain"), tmp_path_factory.mktemp("hidden")
    files = snapshot_files()
    return of_snapshot(plain, files), of_snapshot(hidden, anonymise(files, bytes(32))[0])


def of_snapshot(folder: Path, files: dict[str, bytes]) -> Told:
    for name, data in files.items():
        (folder / name).write_bytes(data)
    options = AssessOptions(version=(1, 30), corpus=False)
    summary = assess_snapshot(load_snapshot(str(folder)), options, progress=lambda name, done, total: None)
    people = StringIO()
    print_assessment(summary, people)
    return Told(assessment_json(summary), assessment_sarif(summary, version="0"), people.getvalue())


def test_an_anonymised_snapshot_shows_the_same(told: tuple[Told, Told]) -> None:
    plain, hidden = (json.loads(one.json) for one in told)
    assert found(plain["families"][0]) == HERE
    for before, after in zip(plain["families"], hidden["families"], strict=True):
        assert kinds(before) == kinds(after)
        assert not after["unexplained"]
        assert not after["disputed"]
        assert [(k["kind"], k["remains"]) for k in before["leaks"]] == [
            (k["kind"], k["remains"]) for k in after["leaks"]
        ]


def test_what_is_told_of_an_anonymised_snapshot_names_nothing_of_the_original(
    told: tuple[Told, Told],
) -> None:
    originals = set().union(*(secrets(data.decode()) for data in snapshot_files().values()))
    assert len([one for one in originals if one.version == 4]) > 40
    assert len([one for one in originals if one.version == 6]) > 10
    for plain, hidden in zip(*told, strict=True):
        assert not originals & secrets(hidden)
        assert len(originals & secrets(plain)) > 5
        assert not [name for name in NAMES if name in hidden]
        assert [name for name in NAMES if name in plain]
    assert all(name in told[0].json for name in NAMES)


def secrets(text: str) -> set[Address]:
    """The addresses in a text, but for those that every host has."""
    addresses: set[Address] = set()
    for word in ADDRESS.findall(text):
        with suppress(ValueError):
            addresses.add(ip_address(word))
    return {one for one in addresses if not is_well_known(one.max_prefixlen, int(one), one.max_prefixlen)}


Address = IPv4Address | IPv6Address
ADDRESS = re.compile(
    r"\b\d+\.\d+\.\d+\.\d+\b|[0-9A-Fa-f]*:[0-9A-Fa-f:]*:[0-9A-Fa-f.]*[0-9A-Fa-f]|[0-9A-Fa-f:]+::"
)
NAMES = ("postgres", "redis", "frontend", "mqtt", "local-only", "diameter", "node-exporter", "telco")


def kinds(family: Any) -> Counter[str]:
    return Counter(one["id"] for one in family["findings"])


@cache
def made(k: str) -> Assessment:
    (one,) = assess_snapshot(*MADE[k].inputs(), progress=lambda name, done, total: None).assessments
    return one


@pytest.mark.parametrize("k", MADE)
def test_made_rules_show_their_difference_and_nothing_else(k: str) -> None:
    one, case = made(k), MADE[k]
    kinds = {f.entry.id for f in one.findings if f.entry is not None}
    assert {f.subject for f in one.findings if f.entry is not None and f.entry.id == k} == case.subjects
    assert kinds - ALWAYS == {k, *case.also}
    assert not one.unexplained
    assert not one.disputed


def test_what_a_made_node_was_looked_at_for_and_has_not_is_listed() -> None:
    assert {c.entry.id for c in made("K22").checked} >= {"K11", "K20"}
    assert all(c.flows for c in made("K22").checked)
