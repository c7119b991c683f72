"""What is read from a program's text: where members lie, which maps there are."""

from __future__ import annotations

import struct
import sys
from dataclasses import replace

import pytest

from translate.bpf import DeclaredMap, declared_maps, emit, layouts, structures
from translate.ir import Family, Program

TEXT = """\
#define ROOM 64
typedef unsigned __int128 addr;
/* struct ghost { u32 never; }; */
struct pair { u16 low; u32 high; };
struct whole {
	u8 flag; /* a hole of fifteen bytes */
	addr a, b;
	struct pair pair;
	u64 names[ROOM - 62];
};
BPF_TABLE("lru_hash", struct pair, struct whole, things, 4096);
BPF_F_TABLE("hash", u32, struct pair, pairs, ROOM, BPF_F_NO_PREALLOC);
"""


def test_members_lie_where_c_puts_them() -> None:
    whole = structures(TEXT)["whole"]
    assert {m.name: (m.offset, m.size, m.count) for m in whole.members} == {
        "flag": (0, 1, 1),
        "a": (16, 16, 1),
        "b": (32, 16, 1),
        "pair.low": (48, 2, 1),
        "pair.high": (52, 4, 1),
        "names": (56, 8, 2),
    }
    assert (whole.size, whole.align) == (80, 16)
    assert "ghost" not in structures(TEXT)


def test_numbers_are_read_from_bytes() -> None:
    pair = structures(TEXT)["pair"]
    assert pair.numbers(struct.pack("=HxxI", 7, 9)) == {"low": 7, "high": 9}
    with pytest.raises(ValueError, match="struct pair has 8 bytes, not 7"):
        pair.numbers(bytes(7))


@pytest.mark.parametrize("member", ["float x", "u8 many[MORE]", "u8 *where"])
def test_what_is_not_known_is_left_out_and_asked_for_in_vain(member: str) -> None:
    text = f"struct bad {{ {member}; }};\n" + TEXT.replace("struct whole, things", "struct bad, things")
    assert "bad" not in structures(text)
    assert layouts(text, {"pairs"})
    with pytest.raises(ValueError, match="unknown structure: struct bad"):
        layouts(text, {"things"})
    assert declared_maps(text.replace("4096", "LOTS"))["things"].room is None


def test_maps() -> None:
    found = declared_maps(TEXT)
    assert found["pairs"] == DeclaredMap(name="pairs", kind="hash", key="u32", value="struct pair", room=64)
    assert found["things"].room == 4096


def test_a_layout_changes_with_the_form_of_entries_alone() -> None:
    was = layouts(TEXT, {"things", "pairs"})
    other = TEXT.replace("u16 low", "u32 low").replace("4096", "8192").replace("/* a hole", "/* some")
    now = layouts(other, {"things", "pairs"})
    assert now["things"] != was["things"]
    assert layouts(TEXT.replace("4096", "8192"), {"things"})["things"] == was["things"]
    assert layouts(TEXT, {"elsewhere"}) == {}


@pytest.mark.parametrize("family", Family)
def test_every_map_of_the_runtime_is_found(family: Family) -> None:
    text = emit(Program(family=family, chains=())).source
    declared = [line for line in text.splitlines() if line.startswith(("BPF_TABLE(", "BPF_F_TABLE("))]
    assert len(declared_maps(text)) == len(declared)
    connection = structures(text)["conn"]
    width = family.bits // 8
    source = next(m for m in connection.members if m.name == "orig.src")
    assert (source.offset, source.size) == (0, width)
    value = (1).to_bytes(width, sys.byteorder) + bytes(connection.size - width)
    assert connection.numbers(value)["orig.src"] == 1


@pytest.mark.parametrize(
    ("processors", "each", "room"),
    [
        (1, 256, 256),
        (3, 256, 1024),
        (16, 256, 4096),
        (128, 256, 1 << 15),
        (200, 128, 1 << 15),
        (8192, 4, 1 << 15),
    ],
)
def test_every_processor_has_slots_of_its_own(processors: int, each: int, room: int) -> None:
    source = replace(emit(Program(chains=(), family=Family.IP)), processors=processors).source
    assert declared_maps(source)["slots"].room == room
    assert f"#define SLOTS_EACH {each}\n" in source
    assert each * processors <= room
