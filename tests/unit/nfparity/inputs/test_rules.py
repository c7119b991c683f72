"""Large rules are condensed wherever they come from, and translated without every rule being read."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from backends.model.contract import Job
from backends.model.node import Node
from backends.model.variant import Variant
from backends.nftables.backend import NftablesBackend, NftablesLoader
from backends.tc_ebpf.backend import TcEbpfBackend
from backends.tc_ebpf.loader import TcEbpfLoader
from nfparity.cli import main
from nfparity.inputs.batches import load_batches
from nfparity.inputs.rules import load_large_rules
from nfparity.migrate.planning.overlap import OverlapBackend
from nfparity.migrate.planning.rules import read_rules
from nfparity.migrate.planning.translation import translate
from tests.lab.kuberules import Shape, draw_cluster, kube_proxy_rules
from translate import bpf, condense, nft, passes
from translate.condense import CondensedRuleset
from translate.ir import Family, Program, Ruleset
from translate.read import read_ruleset

SERVICES = 350


@cache
def dump() -> str:
    text = kube_proxy_rules(draw_cluster(Shape(services=SERVICES, endpoints=2)))
    assert len(text) >= condense.LARGE
    return text


@cache
def plain() -> Program:
    return passes.lower(read_ruleset(dump().encode(), name="rules"), level=2)


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading every rule, or lowering them, is an error."""

    def read(self: CondensedRuleset) -> Ruleset:
        raise AssertionError("every rule is read")

    monkeypatch.setattr(CondensedRuleset, "_read", read)
    insist_on_samples(monkeypatch)


def insist_on_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    plain()
    lower_any = passes.lower

    def lower(ruleset: Ruleset, *, level: int) -> Program:
        assert sum(len(chain.rules) for table in ruleset.tables for chain in table.chains) < 5 * SERVICES
        return lower_any(ruleset, level=level)

    monkeypatch.setattr("translate.condense.lower_plain", lower)
    monkeypatch.setattr("translate.passes.lower", None)


@pytest.mark.usefixtures("unread")
@pytest.mark.parametrize("place", ["rules", "iptables-save"])
def test_a_file_and_a_snapshot_are_translated_from_a_sample(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / place).write_text(dump())
    (tmp_path / "addr.json").write_text('[{"ifname": "eth0", "flags": ["UP"], "addr_info": []}]')
    path = tmp_path / place if place == "rules" else tmp_path
    rules = load_large_rules(str(path))
    assert isinstance(rules, CondensedRuleset)
    assert main(["translate", str(path), "--to", "nft"]) == 0
    assert capsys.readouterr().out == nft.emit(plain()).text


def test_backends_translate_a_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaders: dict[type, Any] = {}
    wanted = plain()

    def session(node: Node, loader: object, limits: object = ()) -> AbstractContextManager[None]:
        loaders[type(loader)] = loader
        return nullcontext()

    (tmp_path / "rules").write_text(dump())
    (tmp_path / "flows").write_text("")
    (batch,) = load_batches(rules=str(tmp_path / "rules"), corpus=str(tmp_path / "flows"), node=None)
    insist_on_samples(monkeypatch)
    # TcEbpfBackend imports it when it opens a session.
    for module in ("backends.nftables.backend", "backends.replay.session"):
        monkeypatch.setattr(f"{module}.open_session", session)
    for backend in (NftablesBackend(), TcEbpfBackend()):
        backend.open(Job(rules=batch.rules, node=batch.node))
    ours, program = loaders[NftablesLoader], loaders[TcEbpfLoader]
    assert ours._text == nft.emit(wanted).text
    assert program._output == bpf.emit(wanted)
    monkeypatch.setattr("nfparity.migrate.planning.overlap.open_session", session)
    OverlapBackend(Variant.LEGACY, (), emptied=False).open(Job(rules=batch.rules, node=batch.node))


@pytest.mark.usefixtures("unread")
def test_a_plan_translates_a_sample() -> None:
    rules = read_rules(dump(), Family.IP, "iptables-save", (), None)
    assert translate(rules, 2).text == nft.emit(plain()).text


def test_every_rule_is_read_once() -> None:
    rules = condense.read_large(dump().encode(), name="rules")
    assert isinstance(rules, CondensedRuleset)
    job = Job(rules=rules, node=Node(()))
    assert job.ruleset == read_ruleset(dump().encode(), name="rules")
    assert job.ruleset is job.ruleset
