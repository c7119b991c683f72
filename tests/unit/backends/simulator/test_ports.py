from __future__ import annotations

from fractions import Fraction

from backends.packet import Port, PortClass
from backends.simulator.chooser import Chooser, branches
from backends.simulator.ports import Ports
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


def test_two_picks_of_one_class_are_not_the_same_port() -> None:
    ports = Ports(Chooser())
    one, other = ports.pick(1024, 65535), ports.pick(1024, 65535)
    assert ports.equal(one, one)
    assert not ports.equal(one, other)


def test_a_pick_meets_a_given_port_as_often_as_chance_has_it() -> None:
    def run(chooser: Chooser) -> bool:
        ports = Ports(chooser)
        return ports.equal(ports.pick(1, 4), 3)

    assert {r: p for p, r in branches(run)} == {True: Fraction(1, 4), False: Fraction(3, 4)}
