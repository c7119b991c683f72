"""Declared sizes of large maps, and maps that outgrow theirs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from translate.ir import Family, Origin
from translate.nft import ChangeKind, NftOutput, emit
from translate.nft.elements import ListedElements, NftElement
from translate.nft.map_size import map_size_for
from translate.nft.model import NftMap
from translate.passes import lower
from translate.read import read_ruleset


def _output(services: int) -> NftOutput:
    text = "*nat\n:PREROUTING ACCEPT [0:0]\n" + "".join(
        f"-A PREROUTING -d 10.{96 + n // 250}.{n % 250}.1/32 -p tcp -m tcp --dport 80"
        f" -j DNAT --to-destination 10.244.0.{1 + n % 9}:80\n"
        for n in range(services)
    )
    return emit(lower(read_ruleset(f"{text}COMMIT\n".encode(), name="rules", family=Family.IP), level=2))


@pytest.mark.parametrize(
    ("elements", "room"),
    [(0, None), (1023, None), (1024, 1536), (1536, 1536), (1537, 3072), (10_000, 12_288), (12_289, 24_576)],
)
def test_room_is_three_quarters_of_a_power_of_two(elements: int, room: int | None) -> None:
    assert map_size_for(elements) == room


def test_large_maps_have_a_size() -> None:
    assert "\tsize " not in _output(1023).text
    assert _output(1024).text.count("\t\tsize 1536\n") == 1


def test_ranges_have_no_size() -> None:
    ranges = tuple(
        NftElement(key=f"{n}-{n + 1}", data=None, origin=Origin("rules", 1, 1, "")) for n in range(2000)
    )
    known = NftMap(name="wide", key="th dport", data=None, interval=True, elements=ListedElements(ranges))
    assert known.size is None
    assert replace(known, interval=False).size == 3072


def test_a_map_that_outgrows_its_room_is_made_anew() -> None:
    change = _output(1600).change_from(_output(1500))
    assert change.kind is ChangeKind.STRUCTURE
    starts = ["flush chain", "delete map", "\t\tsize 3072", "add element", "add rule"]
    places = [next(n for n, x in enumerate(change.text.splitlines()) if x.startswith(s)) for s in starts]
    assert places == sorted(places)
    assert "delete element" not in change.text


def test_a_map_that_shrinks_keeps_its_room() -> None:
    change = _output(1500).change_from(_output(1600))
    assert (change.kind, change.added, change.deleted) == (ChangeKind.ELEMENTS, 0, 100)
