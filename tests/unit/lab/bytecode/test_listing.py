from __future__ import annotations

import pytest

from tests.lab.bytecode.instructions import Decide, LookUp, Verdict
from tests.lab.bytecode.listing import Contents, Listing


def contents(*, interval: bool = False, fields: tuple[int, ...] = ()) -> Contents:
    return Contents("s", 4, interval, fields)


def test_a_hash_has_its_keys() -> None:
    known = contents()
    known.add(b"\0\0\0\6", None, Verdict("accept"), end=False)
    assert known.find(b"\0\0\0\6") == (True, Verdict("accept"))
    assert known.find(b"\0\0\0\7") == (False, None)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (0, (False, None)),
        (9, (False, None)),
        (10, (True, b"a")),
        (19, (True, b"a")),
        (20, (True, b"b")),  # one ends where the next begins
        (29, (True, b"b")),
        (30, (False, None)),
        (255, (True, b"c")),  # to the end of all values: there is no other end
    ],
)
def test_intervals_are_pairs_of_ends(value: int, found: tuple[bool, bytes | None]) -> None:
    known = contents(interval=True)
    ends = ((0, None), (10, b"a"), (20, None), (20, b"b"), (30, None), (250, b"c"))
    for at, data in ends:
        known.add(bytes([0, 0, 0, at]), None, data, end=data is None)
    assert known.find(bytes([0, 0, 0, value])) == found


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("0a00000100500000", True),
        ("0a0000ff005a0000", True),
        ("0a00010000500000", False),
        ("0a000001005b0000", False),
    ],
)
def test_a_concatenation_is_in_when_each_field_is(key: str, found: bool) -> None:
    known = contents(interval=True, fields=(4, 2))
    known.add(bytes.fromhex("0a00000000500000"), bytes.fromhex("0a0000ff005a0000"), None, end=False)
    assert known.find(bytes.fromhex(key))[0] is found


def listing(*, end: str, far: str = "accept", near: str = "accept") -> Listing:
    verdicts = contents()
    verdicts.add(b"\0\0\0\6", None, Verdict("jump", "by map"), end=False)
    verdicts.add(b"\0\0\0\7", None, Verdict(far), end=False)
    return Listing(
        rules={
            "start": [(Decide(Verdict("goto", "near")),)],
            "near": [(LookUp(set=1, register=1, target=0, negated=False),), (Decide(Verdict(near)),)],
            "by map": [(Decide(Verdict("jump", "start")),), (Decide(Verdict(end)),)],
            "aside": [(Decide(Verdict("accept")),)],
        },
        sets={1: verdicts},
    )


def test_chains_do_the_same_where_all_that_they_lead_to_is_equal() -> None:
    one = listing(end="drop")
    one.sets[1].find(b"\0\0\0\6")
    assert one.has_same_instructions(listing(end="drop"), "start")
    for other in (listing(end="accept"), listing(end="drop", far="drop"), listing(end="drop", near="drop")):
        assert not one.has_same_instructions(other, "start")
        assert one.has_same_instructions(other, "aside")
