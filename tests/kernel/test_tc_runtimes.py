"""Runtimes of tc programs: shared by programs that follow one another, with maps like new ones."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from backends.tc_ebpf import TcEbpfBackend
from backends.tc_ebpf.programs import bpfcall
from backends.tc_ebpf.programs.bpfmap import BpfMap
from backends.tc_ebpf.programs.program import LoadedProgram
from backends.tc_ebpf.programs.runtimes import Runtimes
from harness.corpus.cases import read_case
from tests.kernel.helpers.availability import require
from translate.bpf import PROGRAMS, BpfOutput, emit
from translate.passes import lower

CASES = Path(__file__).parents[1] / "corpus"
PROGRAM_ARRAY = 3


@pytest.fixture(scope="module", autouse=True)
def _needs_bcc() -> None:
    require(TcEbpfBackend())


def output(case: str) -> BpfOutput:
    return emit(lower(read_case(CASES / case).ruleset, level=2))


def contents(program: LoadedProgram, names: list[str]) -> dict[str, dict[bytes, bytes]]:
    return {name: dict(program.map(name).entries()) for name in names}


def numbers(program: LoadedProgram) -> dict[str, int]:
    functions = program._descriptors.functions
    return {name: bpfcall.program_number(descriptor) for name, descriptor in functions.items()}


def dirty(table: BpfMap) -> None:
    """Write something into a map."""
    info = table.info
    assert table.info.kind != PROGRAM_ARRAY
    width = table._width
    for number in range(min(info.max_entries, 40)):
        key = struct.pack("=I", number)
        if info.key_size > 4:
            key = struct.pack("=I", 8 * (info.key_size - 4)) + bytes([number]) * (info.key_size - 4)
        bpfcall.update(table.descriptor, key, bytes([number + 1]) * width)


@pytest.mark.parametrize("case", ["cases/kube-ipvs", "cases6/kube-ipvs"])
def test_every_map_is_like_a_new_one(case: str) -> None:
    translated, runtimes = output(case), Runtimes()
    names = list(translated.units[1].maps)
    with LoadedProgram(translated) as fresh:
        new = contents(fresh, [name for name in names if name != "programs"])
    with LoadedProgram(translated, runtimes=runtimes) as first:
        for name in names:
            if name != "programs":
                dirty(first.map(name))
        changed = contents(first, list(new))
        assert [name for name in new if changed[name] == new[name]] == ["locks"]  # locks cannot be written
    with LoadedProgram(translated, runtimes=runtimes) as second:
        assert contents(second, list(new)) == new


def test_programs_share_the_functions_that_run_no_chain() -> None:
    translated, other, runtimes = output("cases/kube-ipvs"), output("cases/limit"), Runtimes()
    with LoadedProgram(translated, runtimes=runtimes) as program:
        before = numbers(program)
        maps = {name: program.map(name).info.number for name in translated.declared}
    with LoadedProgram(other, runtimes=runtimes) as program:
        after = numbers(program)
        array = program.map("programs").descriptor
        entered = [bpfcall.lookup(array, struct.pack("=I", n), 4) for n in range(len(PROGRAMS))]
        same = {name for name, number in after.items() if before[name] == number}
        assert {program.map(name).info.number == maps[name] for name in other.units[1].maps} == {True}
        own = set(other.declared) - set(other.units[1].maps)
        assert {program.map(name).info.number for name in own}.isdisjoint(maps.values())
    assert {f"nfparity_{name}" for name in ("track", "port", "sctp_verify", "sctp_sum", "arrived")} <= same
    assert entered == [struct.pack("=I", after[f"nfparity_{name}"]) for name in PROGRAMS]
    assert same.isdisjoint(translated.units[0].functions)
    assert same <= set(translated.units[1].functions)


def test_another_family_or_size_has_maps_of_its_own() -> None:
    runtimes, seen = Runtimes(), []
    outputs = [output("cases/kube-ipvs"), output("cases6/kube-ipvs")]
    outputs.append(replace(outputs[0], connections=1024))
    for translated in outputs:
        with LoadedProgram(translated, runtimes=runtimes) as program:
            seen.append(program.map("conns").info)
    assert len({info.number for info in seen}) == 3
    assert [info.max_entries for info in seen] == [65536, 65536, 1024]


def test_programs_at_the_same_time_have_no_map_in_common() -> None:
    translated, runtimes = output("cases/kube-ipvs"), Runtimes()
    with (
        LoadedProgram(translated, runtimes=runtimes) as one,
        LoadedProgram(translated, runtimes=runtimes) as other,
    ):
        maps = [{program.map(n).info.number for n in translated.declared} for program in (one, other)]
        assert maps[0].isdisjoint(maps[1])
        assert set(numbers(one).values()).isdisjoint(numbers(other).values())
