"""Layouts, declarations and bytes of structures; tests/kernel/test_tc_programs.py compares with clang."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from translate.bpf import emit, runtime_maps, runtime_types
from translate.bpf.layout.structures import Declarator, DeclaredMap, Number, Structure
from translate.bpf.layout.tables import RuntimePart
from translate.ir import Family, Program

U8, U16, U32, U64 = (Number(f"u{8 * size}", size) for size in (1, 2, 4, 8))
ADDR = Number("addr", 16, "unsigned __int128")
PAIR = Structure("pair", (Declarator(U16, "low"), Declarator(U32, "high")), "Two numbers.")
WHOLE = Structure(
    "whole",
    (
        Declarator(U8, "flag", comment="a hole of fifteen bytes"),
        Declarator(ADDR, "a"),
        Declarator(ADDR, "b"),
        Declarator(PAIR, "pair"),
        Declarator(U64, "names", 2),
    ),
)
THINGS = DeclaredMap(name="things", kind="lru_hash", key=PAIR, value=WHOLE, size=4096)


def test_members_lie_where_c_puts_them() -> None:
    assert {m.name: (m.offset, m.size, m.count) for m in WHOLE.members} == {
        "flag": (0, 1, 1),
        "a": (16, 16, 1),
        "b": (32, 16, 1),
        "pair.low": (48, 2, 1),
        "pair.high": (52, 4, 1),
        "names": (56, 8, 2),
    }
    assert (WHOLE.size, WHOLE.align) == (80, 16)


def test_declarations() -> None:
    assert ADDR.declaration() == "typedef unsigned __int128 addr;\n"
    assert PAIR.declaration() == "/* Two numbers. */\nstruct pair {\n\tu16 low;\n\tu32 high;\n};\n"
    assert PAIR.inline() == "struct pair { u16 low; u32 high; };"
    assert "\tu8 flag; /* a hole of fifteen bytes */\n" in WHOLE.declaration()
    assert "\tstruct pair pair;\n\tu64 names[2];\n" in WHOLE.declaration()
    assert Structure("one", (Declarator(U32, "word", 1),)).inline() == "struct one { u32 word[1]; };"
    assert THINGS.declaration() == 'BPF_TABLE("lru_hash", struct pair, struct whole, things, 4096);\n'
    other = replace(THINGS, size_macro="MANY", flags="BPF_F_NO_PREALLOC", comment="Things.")
    assert other.declaration() == (
        "/* Things. */\n"
        'BPF_F_TABLE("lru_hash", struct pair, struct whole, things, MANY, BPF_F_NO_PREALLOC);\n'
    )


def test_bytes_and_numbers() -> None:
    data = PAIR.pack(low=7, high=9)
    assert data == struct.pack("=HxxI", 7, 9)
    assert PAIR.numbers(data) == {"low": 7, "high": 9}
    whole = WHOLE.pack(a=1 << 127, pair=data, names=(3, 4))
    assert WHOLE.numbers(whole) == {"flag": 0, "a": 1 << 127, "b": 0, "pair.low": 7, "pair.high": 9}
    assert whole[56:72] == struct.pack("=QQ", 3, 4)
    assert WHOLE.pack(names=b"eth0".ljust(16, b"\0"))[56:60] == b"eth0"


def test_values_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="struct pair has 8 bytes, not 7"):
        PAIR.numbers(bytes(7))
    with pytest.raises(ValueError, match="struct pair has no middle"):
        PAIR.pack(middle=1)
    with pytest.raises(ValueError, match="names has 16 bytes, not 4"):
        WHOLE.pack(names=b"eth0")
    with pytest.raises(OverflowError):
        PAIR.pack(low=1 << 16)


def test_a_layout_changes_with_the_form_of_entries_alone() -> None:
    other = Structure("pair", (Declarator(U32, "low"), Declarator(U32, "high")))
    assert replace(THINGS, key=other).layout() != THINGS.layout()
    assert replace(THINGS, kind="hash").layout() != THINGS.layout()
    same = Structure("pair", PAIR.declarators, "Other words.")
    assert replace(THINGS, key=same, size=8192).layout() == THINGS.layout()


OPTIONAL = (
    *("recent_key", "turn", "bucket", "quota", "hash_key", "hash_bucket", "set_element", "count_key"),
    *("counted", "hash_window", "way_key", "way_back"),
)


@pytest.mark.parametrize("family", Family)
def test_a_program_declares_every_map_and_structure_once(family: Family) -> None:
    output = emit(Program(family=family, chains=()))
    for declared in output.declared.values():
        assert output.source.count(declared.declaration()) == 1
    assert output.source.count("BPF_TABLE(") + output.source.count("BPF_F_TABLE(") == len(output.declared)
    for name, structure in runtime_types(family).structures.items():
        assert output.source.count(structure.declaration()) == (name not in OPTIONAL)


@pytest.mark.parametrize("family", Family)
def test_parts_bring_their_maps(family: Family) -> None:
    names = {one.name for one in runtime_maps(family)}
    more = {
        one.name: one
        for one in runtime_maps(family, tuple(RuntimePart), counters=3, buckets=2, quotas=5, counted=16)
    }
    assert more.keys() - names == {
        *("recents", "turns", "buckets", "quotas", "hashed", "windows", "counted", "blank_lists"),
        *("cgroups", "ways_back"),
    }
    assert (more["turns"].size, more["buckets"].size, more["quotas"].size) == (3, 2, 5)


@pytest.mark.parametrize(
    ("processors", "each", "slots"),
    [
        (1, 256, 256),
        (3, 256, 1024),
        (16, 256, 4096),
        (128, 256, 1 << 15),
        (200, 128, 1 << 15),
        (8192, 4, 1 << 15),
    ],
)
def test_every_processor_has_slots_of_its_own(processors: int, each: int, slots: int) -> None:
    output = replace(emit(Program(chains=(), family=Family.IP)), processors=processors)
    assert output.declared["slots"].size == slots
    assert f"#define SLOTS_EACH {each}\n" in output.source
    assert f"#define SLOTS {slots}\n" in output.source
    assert each * processors <= slots
