"""Compiled tc programs on this kernel: loaded from the cache they do what they do when compiled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from backends.model.contract import Job
from backends.model.node import Node
from backends.tc_ebpf import TcEbpfBackend
from backends.tc_ebpf.cache import cache_folder
from backends.tc_ebpf.program import LoadedProgram
from harness.corpus.random.flows import random_flows
from tests.kernel.helpers.availability import require
from translate.bpf import emit
from translate.errors import MachineError
from translate.ir import Ruleset
from translate.passes import lower
from translate.read import read_ruleset

SERVICE = """\
*nat
:PREROUTING ACCEPT [0:0]
{rules}COMMIT
"""
RULE = "-A PREROUTING -d 10.96.0.{}/32 -p udp -m udp --dport 53 -j DNAT --to-destination 10.244.0.{}:53\n"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    require(TcEbpfBackend())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return cache_folder()


def services(*last: int) -> Ruleset:
    rules = "".join(RULE.format(number, number) for number in last)
    return read_ruleset(SERVICE.format(rules=rules).encode(), name="rules")


def entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.exists() else []


def test_rules_of_one_shape_are_compiled_once(own_cache: Path, kind_node: Node) -> None:
    for ruleset in (services(10, 11), services(20, 21, 22, 23, 24)):
        with TcEbpfBackend().open(Job(rules=ruleset, node=kind_node)):
            pass
    assert len(entries(own_cache)) == 1


def test_the_same_outcomes_from_the_cache_as_compiled(own_cache: Path, kind_node: Node) -> None:
    rules = services(10, 11)
    flows = list(random_flows(rules, kind_node, seed=3, count=200))
    job = Job(rules=rules, node=kind_node)
    shown = []
    for backend in (TcEbpfBackend(cached=False), TcEbpfBackend(), TcEbpfBackend()):
        with backend.open(job) as session:
            shown.append(list(session.replay(flows)))
    assert shown[0] == shown[1] == shown[2]
    assert len(entries(own_cache)) == 1


def test_nothing_is_kept_or_taken_without_the_cache(own_cache: Path, kind_node: Node) -> None:
    with TcEbpfBackend(cached=False).open(Job(rules=services(10, 11), node=kind_node)):
        pass
    assert entries(own_cache) == []


def test_a_damaged_entry_is_made_anew(own_cache: Path, kind_node: Node) -> None:
    job = Job(rules=services(10, 11), node=kind_node)
    with TcEbpfBackend().open(job):
        pass
    (entry,) = entries(own_cache)
    whole = entry.read_bytes()
    entry.write_bytes(whole[: len(whole) // 2])
    with TcEbpfBackend().open(job):
        pass
    assert entry.read_bytes() == whole


def test_what_the_kernel_refuses_is_told_with_its_line(own_cache: Path) -> None:
    """A program in the cache knows no lines of C; they come from compiling it once more."""
    output = emit(lower(services(10, 11), level=2))
    begin = "int nfparity_answer(struct __sk_buff *skb)\n{\n"
    assert begin in output.after
    bad = replace(
        output, after=output.after.replace(begin, f"{begin}\tif (*(u32 *)(long)skb->len) return 0;\n")
    )
    for _ in range(2):
        with pytest.raises(MachineError, match=r"answer: the verifier refuses it: (?s:.*)skb->len"):
            LoadedProgram(bad)
        assert len(entries(own_cache)) == 1
