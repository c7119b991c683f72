"""Compiled tc programs: the layouts of structures as clang makes them, and the work of the verifier."""

from __future__ import annotations

import os
import signal
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from backends.tc_ebpf import TcEbpfBackend
from backends.tc_ebpf.programs.cache import Cache, cache_folder
from backends.tc_ebpf.programs.program import compiled
from harness.corpus.cases import read_case
from tests.kernel.helpers.availability import require
from translate.bpf import Structure, emit, runtime_types
from translate.bpf.layout.maps import MapContents, SetContents
from translate.passes import lower

CASES = Path(__file__).parents[1] / "corpus"
KINDS = {"int": 1, "array": 3, "struct": 4, "typedef": 8}
SIZES = {1: 4, 3: 12, 14: 4, 17: 4}
SIZES_EACH = {4: 12, 5: 12, 6: 8, 13: 8, 15: 12, 19: 12}


@dataclass(frozen=True)
class Type:
    """A type of BTF; ``size`` is in bytes, for types that refer to another one its number."""

    kind: int
    name: str
    size: int
    members: tuple[tuple[str, int, int], ...] = ()
    element: int = 0
    count: int = 1


def btf_types(data: bytes) -> list[Type]:
    """The types of a BTF object (Documentation/bpf/btf.rst), by number."""
    *_, head, types_at, types_size, names_at, _ = struct.unpack_from("=HBBIIIII", data)
    names = data[head + names_at :]

    def name(at: int) -> str:
        return names[at : names.index(b"\0", at)].decode()

    def read() -> Iterator[Type]:
        at, end = head + types_at, head + types_at + types_size
        while at < end:
            name_at, info, size = struct.unpack_from("=III", data, at)
            kind, several = info >> 24 & 31, info & 0xFFFF
            at += 12
            members, element, count = [], 0, 1
            if kind == KINDS["struct"]:
                for number in range(several):
                    member, of, bits = struct.unpack_from("=III", data, at + 12 * number)
                    members.append((name(member), of, bits // 8))
            elif kind == KINDS["array"]:
                element, _, count = struct.unpack_from("=III", data, at)
            yield Type(kind, name(name_at), size, tuple(members), element, count)
            at += SIZES.get(kind, 0) + several * SIZES_EACH.get(kind, 0)

    return [Type(0, "void", 0), *read()]


def resolved(types: list[Type], number: int) -> Type:
    kind = types[number]
    return resolved(types, kind.size) if kind.kind == KINDS["typedef"] else kind


def insist(types: list[Type], number: int, structure: Structure) -> int:
    """Compare a structure and those in it with BTF; return how many members were compared."""
    there = resolved(types, number)
    assert (there.kind, there.name, there.size) == (KINDS["struct"], structure.name, structure.size)
    assert [(name, offset) for name, _, offset in there.members] == [
        (declared.name, offset) for declared, offset in structure.offsets
    ]
    compared = 0
    for declared, (_, of, _) in zip(structure.declarators, there.members, strict=True):
        kind, count = of, 1
        if types[of].kind == KINDS["array"]:
            kind, count = types[of].element, types[of].count
        assert (resolved(types, kind).size, count) == (declared.type.size, declared.count), declared
        compared += insist(types, kind, declared.type) if isinstance(declared.type, Structure) else 1
    return compared


@pytest.fixture(autouse=True)
def needs_the_backend() -> None:
    require(TcEbpfBackend())


@pytest.mark.parametrize(
    ("case", "optional"),
    [
        ("cases/every-construct", {"recent_key", "turn"}),
        pytest.param("cases/kube-ipvs", set(), marks=pytest.mark.slow),
        ("cases6/strange6", set()),
        pytest.param("cases6/kube-ipvs", set(), marks=pytest.mark.slow),
    ],
)
def test_clang_lays_structures_out_as_declared(case: str, optional: set[str]) -> None:
    output = emit(lower(read_case(CASES / case).ruleset, level=2))
    program = compiled(output, cache=Cache(cache_folder()))
    types = btf_types(program.types)
    compared = {}
    for made in program.maps:
        declared = output.declared[made.name]
        for wanted, size, number in (
            (declared.key, made.info.key_size, made.info.key_type),
            (declared.value, made.info.value_size, made.info.value_type),
        ):
            if made.name != "slots" or wanted is declared.key:
                assert size == wanted.size, made.name
            if isinstance(wanted, Structure):
                compared[wanted.name] = insist(types, number, wanted)
    assert compared["conn"] == len(runtime_types(output.family).structures["conn"].members)
    assert optional <= compared.keys()
    filled: list[MapContents | SetContents] = [*output.maps, *output.sets]
    lookups = [contents.key.name for contents in filled]
    assert lookups
    assert set(lookups) <= compared.keys()


@pytest.mark.parametrize("case", ["cases/every-construct", "cases6/strange6"])
def test_the_verifier_follows_few_paths(case: str) -> None:
    """A value that the verifier knows can multiply the paths; see ``unknown()`` in types.h."""
    output = emit(lower(read_case(CASES / case).ruleset, level=2))
    sizes = {name: declared.size for name, declared in output.declared.items()}
    loaded = compiled(output, cache=Cache(cache_folder())).load(sizes, {})
    try:
        verified = {name: verified_instructions(number) for name, number in loaded.functions.items()}
    finally:
        for number in (*loaded.functions.values(), *loaded.maps.values()):
            os.close(number)
    assert sum(verified.values()) < 250_000, verified


def verified_instructions(descriptor: int) -> int:
    """Return the number of instructions that the verifier processed for a program (bpf_prog_show_fdinfo)."""
    lines = Path(f"/proc/self/fdinfo/{descriptor}").read_text().splitlines()
    fields = dict(line.split(":\t") for line in lines)
    return int(fields["verified_insns"])


def test_a_signal_does_not_keep_a_program_from_loading() -> None:
    output = emit(lower(read_case(CASES / "cases/every-construct").ruleset, level=2))
    program = compiled(output, cache=Cache(cache_folder()))
    sizes = {name: declared.size for name, declared in output.declared.items()}
    interrupted: list[int] = []

    def handle(number: int, _: object) -> None:
        interrupted.append(number)
        if len(interrupted) < 4:
            signal.setitimer(signal.ITIMER_REAL, 0.02)

    before = signal.signal(signal.SIGALRM, handle)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        loaded = program.load(sizes, {})
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    for number in (*loaded.functions.values(), *loaded.maps.values()):
        os.close(number)
    assert interrupted
