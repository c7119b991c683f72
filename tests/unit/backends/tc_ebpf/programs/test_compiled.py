"""Compiled programs as bytes, and the cache that keeps them."""

from __future__ import annotations

import os
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from backends.tc_ebpf.programs.bpfcall import MapInfo
from backends.tc_ebpf.programs.cache import Cache, cache_folder, decode, encode, program_key
from backends.tc_ebpf.programs.compiled import CompiledFunction, CompiledMap, CompiledProgram, with_maps

INFO = MapInfo(
    kind=9, number=7, key_size=16, value_size=120, max_entries=1, flags=0, types=3, key_type=1, value_type=11
)
PROGRAM = CompiledProgram(
    functions=(
        CompiledFunction("nfparity_ingress", bytes(range(16))),
        CompiledFunction("nfparity_egress", b""),
    ),
    maps=(CompiledMap("conns", INFO),),
    types=b"\x9f\xeb\x01\0",
)
KEY = "0" * 64


def instruction(code: int, registers: int, number: int) -> bytes:
    return struct.pack("=BBhi", code, registers, 0, number)


def test_what_is_encoded_is_decoded() -> None:
    assert decode(encode(PROGRAM)) == PROGRAM


@pytest.mark.parametrize("damage", [b"", b"x", encode(PROGRAM)[:-1], encode(PROGRAM) + b"x", bytes(500)])
def test_what_is_damaged_is_no_program(damage: bytes) -> None:
    assert decode(damage) is None


def test_any_changed_byte_is_seen() -> None:
    data = encode(PROGRAM)
    for at in range(0, len(data), 7):
        assert decode(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]) is None


def test_maps_are_numbered_in_loads_of_their_descriptors_alone() -> None:
    a_map = instruction(0x18, 0x11, 5) + instruction(0, 0, 0)
    a_number = instruction(0x18, 0x01, 5) + instruction(0, 0, 5)  # the same number, as a constant
    looks_alike = instruction(0x18, 0x01, 9) + instruction(0x18, 0x11, 5)  # its second half
    other = instruction(0xB7, 0x01, 5)
    code = a_map + a_number + looks_alike + other
    assert with_maps(code, {5: 77}) == instruction(0x18, 0x11, 77) + code[8:]
    with pytest.raises(KeyError):
        with_maps(code, {})


def test_linked_functions_use_the_maps_of_the_first_unit() -> None:
    first = CompiledProgram(
        functions=(CompiledFunction("one", instruction(0x18, 0x11, 1) + instruction(0, 0, 0)),),
        maps=(CompiledMap("rules", replace(INFO, key_size=8)), CompiledMap("conns", INFO)),
        types=b"first",
    )
    load = instruction(0x18, 0x11, 0) + instruction(0, 0, 0)
    # The numbers of types belong to the unit's own BTF object.
    second = CompiledProgram(
        functions=(CompiledFunction("two", load),),
        maps=(CompiledMap("conns", replace(INFO, key_type=5, value_type=6)),),
        types=b"second",
    )
    linked = first.linked(second)
    assert (linked.maps, linked.types) == (first.maps, first.types)
    assert linked.functions[0] == first.functions[0]
    assert linked.functions[1] == CompiledFunction("two", instruction(0x18, 0x11, 1) + load[8:])


@pytest.mark.parametrize(
    "declared",
    [CompiledMap("other", INFO), CompiledMap("conns", replace(INFO, value_size=8))],
    ids=["missing", "other size"],
)
def test_units_with_different_maps_are_not_linked(declared: CompiledMap) -> None:
    with pytest.raises(ValueError, match=declared.name):
        PROGRAM.linked(CompiledProgram(functions=(), maps=(declared,), types=b""))


def test_a_program_is_kept(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "nfparity" / "tc")
    assert cache.get(KEY) is None
    cache.put(KEY, PROGRAM)
    assert cache.get(KEY) == PROGRAM
    assert [path.name for path in (tmp_path / "nfparity" / "tc").iterdir()] == [KEY]


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_an_entry_that_others_may_write_is_ignored(tmp_path: Path, mode: int) -> None:
    cache = Cache(tmp_path)
    cache.put(KEY, PROGRAM)
    (tmp_path / KEY).chmod(mode)
    assert cache.get(KEY) is None


def test_a_folder_that_others_may_write_is_not_used(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put(KEY, PROGRAM)
    tmp_path.chmod(0o777)
    assert cache.get(KEY) is None
    cache.put("1" * 64, PROGRAM)
    assert [path.name for path in tmp_path.iterdir()] == [KEY]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_an_entry_of_somebody_else_is_ignored(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put(KEY, PROGRAM)
    os.chown(tmp_path / KEY, 12345, 0)
    assert cache.get(KEY) is None


def test_neither_a_link_nor_a_folder_is_an_entry(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    cache.put(KEY, PROGRAM)
    (tmp_path / "elsewhere").write_bytes((tmp_path / "cache" / KEY).read_bytes())
    (tmp_path / "cache" / KEY).unlink()
    (tmp_path / "cache" / KEY).symlink_to(tmp_path / "elsewhere")
    assert cache.get(KEY) is None
    (tmp_path / "cache" / ("1" * 64)).mkdir()
    assert cache.get("1" * 64) is None


def test_a_place_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = Cache(tmp_path / "file" / "tc")
    cache.put(KEY, PROGRAM)
    assert cache.get(KEY) is None


def test_the_oldest_entries_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backends.tc_ebpf.programs.cache._MOST", 2)
    cache = Cache(tmp_path)
    for number in range(4):
        cache.put(str(number), PROGRAM)
        os.utime(tmp_path / str(number), (number, number))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2", "3"]


def test_the_folder_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_folder() == Path("/somewhere/nfparity/tc")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative paths are to be ignored")
    monkeypatch.setenv("HOME", "/home/me")
    assert cache_folder() == Path("/home/me/.cache/nfparity/tc")


def test_another_text_has_another_key() -> None:
    assert program_key("int a;") == program_key("int a;") != program_key("int b;")
