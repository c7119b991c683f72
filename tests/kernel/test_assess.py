"""What changes with kube-proxy's mode, on the running kernel: a real kube-proxy's rules, and made ones."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from harness.assess.assessing import Assessment
from harness.assess.catalogue import Decided, catalogue
from harness.assess.snapshots import assess_snapshot
from harness.capture.anonymise.snapshot import anonymise
from harness.cli.main import main
from tests.kernel.assessed import ALWAYS, HERE, MADE, REAL, snapshot_files

LEAKS = {
    "an address of the service range that no service has": True,
    "an undefined port of a ClusterIP": False,
    "no port at all, to a ClusterIP": False,
}
"""What leaks today on a real node, and whether it still will with Kubernetes 1.30."""

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="kernel backends need root"),
]


def test_every_difference_is_shown_here_or_on_made_rules_or_out_of_reach() -> None:
    reachable = {one.id for one in catalogue() if one.decided is not Decided.OUT_OF_REACH}
    assert reachable == HERE.keys() | MADE.keys()
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
        subjects.setdefault(one["id"], set()).add(one["subject"])
    return subjects


def given(version: str = "1.30") -> tuple[str, ...]:
    return ("--against", str(REAL / "realistic.nft"), "--kubernetes", version)


def test_a_real_kube_proxys_rules_show_what_they_can_and_nothing_else(
    capsys: pytest.CaptureFixture[str],
) -> None:
    family = assessed(capsys, *given())
    assert found(family) == HERE
    assert not family["unexplained"]
    assert not family["disputed"]
    assert {leak["kind"]: leak["remains"] for leak in family["leaks"]} == LEAKS
    for finding in family["findings"]:
        assert finding["witnesses"], finding["subject"]
        assert all(line["text"].startswith("-A KUBE-") for line in finding["lines"])
        assert finding["lines"]


def test_the_rules_made_for_its_version_show_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    family = assessed(capsys, "--kubernetes", "1.30")
    assert found(family) == HERE
    assert not family["unexplained"]


def test_a_witness_is_repeated_alone(capsys: pytest.CaptureFixture[str]) -> None:
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
    assert found(family) == {"K05": {"whatever is forwarded"}}
    assert any("left out" in one for one in family["assumed"])


def test_a_flow_of_no_such_name_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words(*given()), "--known-only", "--only", "nobody"]) == 2
    assert "'nobody'" in capsys.readouterr().err


def of_snapshot(folder: Path, files: dict[str, bytes], capsys: pytest.CaptureFixture[str]) -> Any:
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    assert main(["assess", str(folder), "--kubernetes", "1.30", "--format", "json"]) == 1
    return json.loads(capsys.readouterr().out)


def test_an_anonymised_snapshot_shows_the_same_and_nothing_of_where_it_is_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = snapshot_files()
    plain = of_snapshot(tmp_path / "plain", files, capsys)
    hidden = of_snapshot(tmp_path / "hidden", anonymise(files, bytes(32))[0], capsys)
    assert found(plain["families"][0]) == HERE
    for before, after in zip(plain["families"], hidden["families"], strict=True):
        assert kinds(before) == kinds(after)
        assert not after["unexplained"]
        assert not after["disputed"]
        assert [(k["kind"], k["remains"]) for k in before["leaks"]] == [
            (k["kind"], k["remains"]) for k in after["leaks"]
        ]
    told = json.dumps(hidden["families"])
    addresses = set(ADDRESS.findall(files["iptables-save"].decode())) - KNOWN_TO_ALL
    assert len(addresses) > 40
    assert not addresses & set(ADDRESS.findall(told))
    assert not [name for name in NAMES if name in told]
    assert all(name in json.dumps(plain) for name in NAMES)


ADDRESS = re.compile(r"\b\d+\.\d+\.\d+\.\d+\b")
KNOWN_TO_ALL = {"127.0.0.0", "255.255.255.255"}
NAMES = ("postgres", "redis", "frontend", "mqtt", "local-only", "diameter", "node-exporter", "telco")


def kinds(family: Any) -> Counter[str]:
    return Counter(one["id"] for one in family["findings"])


@cache
def made(k: str) -> Assessment:
    (one,) = assess_snapshot(MADE[k].question(), progress=lambda name, done, total: None).assessments
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
    assert all(c.witnesses for c in made("K22").checked)
