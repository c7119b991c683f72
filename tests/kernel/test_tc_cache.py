"""Compiled tc programs on this kernel: loaded from the cache they do what they do when compiled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from backends.model.contract import Job
from backends.model.node import Node
from backends.tc_ebpf import TcEbpfBackend
from backends.tc_ebpf.programs.cache import cache_folder
from backends.tc_ebpf.programs.program import LoadedProgram
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


@pytest.fixture(scope="module")
def compiled(kind_node: Node, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The entries of a program that was compiled into an empty cache: the content of each by its name."""
    require(TcEbpfBackend())
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        with TcEbpfBackend().open(Job(rules=services(10, 11), node=kind_node)):
            pass
        made = {entry.name: entry.read_bytes() for entry in entries(cache_folder())}
        assert len(made) == 2  # the unit of the chains and that of the runtime
        return made


def filled(folder: Path, compiled: dict[str, bytes]) -> list[Path]:
    """Put the entries into a cache."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, content in compiled.items():
        (folder / name).write_bytes(content)
    return entries(folder)


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


def test_rules_of_one_shape_are_compiled_once(
    own_cache: Path, kind_node: Node, compiled: dict[str, bytes]
) -> None:
    kept = filled(own_cache, compiled)
    written = [entry.stat() for entry in kept]
    for ruleset in (services(10, 11), services(20, 21, 22, 23, 24)):
        with TcEbpfBackend().open(Job(rules=ruleset, node=kind_node)):
            pass
    assert entries(own_cache) == kept
    for entry, before in zip(kept, written, strict=True):
        assert (entry.stat().st_ino, entry.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_another_ruleset_has_another_unit_of_chains_only(
    own_cache: Path, kind_node: Node, compiled: dict[str, bytes]
) -> None:
    kept = filled(own_cache, compiled)
    other = SERVICE.format(rules=RULE.format(10, 11) + "-A PREROUTING -s 10.1.0.0/16 -j RETURN\n")
    with TcEbpfBackend().open(Job(rules=read_ruleset(other.encode(), name="rules"), node=kind_node)):
        pass
    assert len(entries(own_cache)) == 3
    assert set(kept) < set(entries(own_cache))


def test_the_same_outcomes_from_the_cache_as_compiled(
    own_cache: Path, kind_node: Node, compiled: dict[str, bytes]
) -> None:
    """Without the cache, nothing is kept in it."""
    rules = services(10, 11)
    flows = list(random_flows(rules, kind_node, seed=3, count=200))
    job = Job(rules=rules, node=kind_node)
    with TcEbpfBackend(cached=False).open(job) as session:
        shown = list(session.replay(flows))
    assert entries(own_cache) == []
    kept = filled(own_cache, compiled)
    for _ in range(2):
        with TcEbpfBackend().open(job) as session:
            assert list(session.replay(flows)) == shown
    assert entries(own_cache) == kept


def test_a_damaged_entry_is_made_anew(own_cache: Path, kind_node: Node, compiled: dict[str, bytes]) -> None:
    entry = min(filled(own_cache, compiled), key=lambda entry: entry.stat().st_size)
    entry.write_bytes(entry.read_bytes()[:1000])
    with TcEbpfBackend().open(Job(rules=services(10, 11), node=kind_node)):
        pass
    assert {entry.name: entry.read_bytes() for entry in entries(own_cache)} == compiled


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2])
def test_what_the_kernel_refuses_is_told_with_its_line(own_cache: Path, times: int) -> None:
    """A program in the cache knows no lines of C; they come from compiling it once more."""
    output = emit(lower(services(10, 11), level=2))
    begin = "int nfparity_answer(struct __sk_buff *skb)\n{\n"
    assert begin in output.after
    bad = replace(
        output, after=output.after.replace(begin, f"{begin}\tif (*(u32 *)(long)skb->len) return 0;\n")
    )
    for _ in range(times):
        with pytest.raises(MachineError, match=r"answer: the verifier refuses it: (?s:.*)skb->len"):
            LoadedProgram(bad)
        assert len(entries(own_cache)) == 2
