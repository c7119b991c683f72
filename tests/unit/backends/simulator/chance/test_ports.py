from __future__ import annotations

from fractions import Fraction

from backends.model.packet import Port, PortClass
from backends.simulator.chance.chooser import Chooser, branches
from backends.simulator.chance.ports import Ports
from translate.ir import Interval


def test_a_test_of_a_pick_splits_exactly_and_narrows_it() -> None:
    def run(chooser: Chooser) -> tuple[bool, bool, Port | None]:
        ports = Ports(chooser)
        pick = ports.pick(1024, 65535)
        low = ports.within(pick, (Interval(0, 2047),))
        again = ports.within(pick, (Interval(1024, 2047),))
        return low, again, ports.shown(pick)

    share = Fraction(1024, 64512)
    assert {r: p for p, r in branches(run)} == {
        (True, True, PortClass(1024, 2047)): share,
        (False, False, PortClass(2048, 65535)): 1 - share,
    }


def test_a_pick_avoids_ports_in_use_and_is_a_number_when_one_is_left() -> None:
    ports = Ports(Chooser())
    assert ports.pick(1, 3, taken=(1, 3)) == 2
    assert ports.pick(7, 7) == 7
    assert ports.pick(7, 7, taken=(7,)) == 7  # the kernel gives up with a used port
    pick = ports.pick(1, 4, taken=(2,))
    assert not ports.could_equal(pick, 2)
    assert ports.could_equal(3, pick)


def test_a_pick_is_none_of_those_that_it_was_to_avoid() -> None:
    ports = Ports(Chooser())
    one = ports.pick(1024, 65535)
    other = ports.pick(1024, 65535, taken=(one,))
    assert ports.equal(one, one)
    assert not ports.could_equal(other, one)
    assert not ports.equal(one, other)


def test_a_full_range_gives_a_port_in_use() -> None:
    ports = Ports(Chooser())
    one = ports.pick(80, 81)
    other = ports.pick(80, 81, taken=(one,))
    assert ports.pick(80, 81, taken=(one, other)) in (one, other)
    assert ports.pick(80, 82, taken=(one, other, 82)) in (one, other)
    assert ports.pick(80, 82, taken=(one, other)) not in (one, other)
    assert ports.pick(81, 82, taken=(one, other)) not in (one, other), "one of them may be port 80"


def test_a_pick_meets_a_given_port_as_often_as_chance_has_it() -> None:
    def run(chooser: Chooser) -> bool:
        ports = Ports(chooser)
        return ports.equal(ports.pick(1, 4), 3)

    assert {r: p for p, r in branches(run)} == {True: Fraction(1, 4), False: Fraction(3, 4)}


def test_picks_of_other_tuples_may_turn_out_to_be_one_port() -> None:
    def run(chooser: Chooser) -> tuple[bool, bool, bool]:
        ports = Ports(chooser)
        one, other = ports.pick(1, 4), ports.pick(3, 6)
        equal = ports.equal(one, other)
        return equal, ports.same(other, one), ports.within(other, (Interval(5, 6),))

    found = {r: p for p, r in branches(run)}
    assert sum(p for (equal, *_), p in found.items() if equal) == Fraction(2, 16)
    assert {r[:2] for r in found} == {(True, True), (False, False)}
    assert (True, True, True) not in found  # equal, they are what both can be


def test_whether_kernels_draw_or_count_is_a_guess() -> None:
    def run(chooser: Chooser) -> tuple[bool, bool]:
        ports = Ports(chooser)
        equal = ports.equal(ports.pick(1024, 65535, drawn=False), ports.pick(1024, 65535, drawn=False))
        return equal, ports.guessed

    assert {r: p for p, r in branches(run)} == {(True, True): Fraction(1, 2), (False, True): Fraction(1, 2)}
