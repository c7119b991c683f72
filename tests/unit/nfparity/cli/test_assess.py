"""``nfparity assess`` refuses what it cannot judge, before anything is replayed."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.model.contract import Availability
from nfparity.assess.assessing import Assessment, Finding
from nfparity.assess.catalogue import entry
from nfparity.cli.main import main

CORPUS = Path(__file__).resolve().parents[3] / "corpus/rulesets"
RULES = str(CORPUS / "kube-real/rules.iptables-save")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("missing.tar.gz",), "missing.tar.gz"),
        ((str(CORPUS / "kube-ipvs/rules.iptables-save"),), "ipvs mode"),
        ((str(CORPUS / "port-ranges/rules.iptables-save"),), "no rules of kube-proxy's iptables mode\n"),
        ((RULES, "--kubernetes", "1.12"), "1.12"),
        ((RULES, "--against", "missing.nft"), "missing.nft"),
        ((RULES, "--family", "ip6"), "IPv6"),
        (
            (RULES, "--service-range", "10.96.0.0/12", "--service-range", "10.0.0.0/8"),
            "given twice for one family",
        ),
    ],
)
def test_bad_input(words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["assess", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_snapshot_without_nftables_is_no_ruleset(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "iptables-save").write_bytes(Path(RULES).read_bytes())
    assert main(["assess", RULES, "--against", str(tmp_path)]) == 2
    assert "nft.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [("--kubernetes", "soon"), ("--service-range", "10.0.0.0/99"), ("--format", "pdf")]
)
def test_bad_options(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["assess", RULES, *words])
    assert ended.value.code == 2
    assert words[0] in capsys.readouterr().err


class Unable:
    """A side that cannot run here."""

    name = "iptables-legacy"

    def probe(self) -> Availability:
        return Availability(ok=False, reason="it needs root")


def test_what_the_machine_lacks(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nfparity.assess.snapshots.iptables_backend", Unable)
    assert main(["assess", RULES]) == 3
    assert "iptables-legacy cannot run here: it needs root" in capsys.readouterr().err


@pytest.fixture
def two_families(tmp_path: Path) -> tuple[str, str]:
    """A snapshot with the rules of both families, and a ruleset that comes for one of them."""
    real = CORPUS / "kube-real"
    folder = tmp_path / "node"
    folder.mkdir()
    for name in ("iptables-save", "ip6tables-save"):
        (folder / name).write_bytes((real / f"rules.{name}").read_bytes())
    given = tmp_path / "one-family.nft"
    given.write_text((real / "realistic.nft").read_text().partition("table ip6")[0])
    return str(folder), str(given)


@pytest.mark.parametrize(("words", "status"), [((), 4), (("--family", "ip"), 0)])
def test_a_family_for_which_nothing_comes_is_not_tested(
    words: tuple[str, ...],
    status: int,
    two_families: tuple[str, str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("nfparity.assess.snapshots._probe", lambda *_, **__: None)
    monkeypatch.setattr(
        "nfparity.assess.snapshots.assess", lambda facts, **_: Assessment(facts=facts, flows=3)
    )
    snapshot, given = two_families
    for form in ("text", "json", "sarif", "junit", "html"):
        command = ["assess", snapshot, "--against", given, "--known-only", "--format", form, *words]
        assert main(command) == status
        assert ("kube-proxy serves it here" in capsys.readouterr().out) is (status == 4)


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ((), 1),
        (("--fail-on", "any"), 1),
        (("--fail-on", "changes"), 0),
        (("--accept", "K31"), 0),
        (("--accept", "K31/eth0"), 0),
        (("--accept", "K31/eth1"), 1),
        (("--baseline", "earlier"), 0),
    ],
)
def test_the_status_depends_on_new_and_grave_findings(
    words: tuple[str, ...],
    status: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("nfparity.assess.snapshots._probe", lambda *_, **__: None)
    fact = Finding(entry=entry("K31"), subject="eth0", description="a fact")
    monkeypatch.setattr(
        "nfparity.assess.snapshots.assess", lambda facts, **_: Assessment(facts=facts, findings=(fact,))
    )
    earlier = tmp_path / "earlier"
    assert main(["assess", RULES, "--known-only", "--format", "json"]) == 1
    earlier.write_text(capsys.readouterr().out)
    options = [str(earlier) if word == "earlier" else word for word in words]
    assert main(["assess", RULES, "--known-only", *options]) == status
    out = capsys.readouterr().out
    shown = "--fail-on" in words or not words or "K31/eth1" in words
    assert ("\n  to check     K31\n" in out) is shown
    assert ("\n  accepted     1 finding, not shown\n" in out) is not shown
    assert ("\nnothing changes except the accepted findings; 0 flows\n" in out) is not shown


def test_accepted_findings_are_of_one_snapshot(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["assess", RULES, RULES, "--accept", "K31"]) == 2
    assert "--accept is for one snapshot" in capsys.readouterr().err
