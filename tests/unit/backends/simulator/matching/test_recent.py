from __future__ import annotations

from typing import Any

import pytest

from backends.model.flow import Pause
from backends.model.outcome import Verdict
from backends.simulator.matching.recent import MOST_ADDRESSES, RecentLists, remembered_times
from translate.ir import Recent, RecentMode, SetDirection

FORWARD, DROP = Verdict.FORWARD, Verdict.DROP
WHOLE = 0xFFFFFFFF


def rule(mode: RecentMode, **options: Any) -> Recent:
    options = {"mask": WHOLE, "side": SetDirection.SRC, **options}
    return Recent(name="a", mode=mode, **options)


SET, REMOVE = rule(RecentMode.SET), rule(RecentMode.REMOVE)


def lists(*rules: Recent) -> RecentLists:
    return RecentLists(remembered_times(rules or (SET,)))


def asks(known: RecentLists, test: Recent, address: int = 1, *, at: float = 0.0, ttl: int = 64) -> bool:
    known.now = at
    return known.matches(test, address, ttl)


@pytest.mark.parametrize(("age", "expected"), [(0, True), (1.9, True), (2, True), (2.1, False)])
def test_seconds_count_from_the_last_time_seen_and_include_their_end(age: float, expected: bool) -> None:
    known = lists()
    assert asks(known, SET)
    assert asks(known, rule(RecentMode.RCHECK, seconds=2), at=age) is expected
    assert asks(known, rule(RecentMode.RCHECK), at=age)
    assert not asks(known, rule(RecentMode.RCHECK), 2, at=age)


def test_rcheck_leaves_the_time_and_update_renews_it() -> None:
    for mode, later in ((RecentMode.RCHECK, False), (RecentMode.UPDATE, True)):
        known = lists()
        asks(known, SET)
        assert asks(known, rule(mode, seconds=2), at=1.5)
        assert asks(known, rule(mode, seconds=2), at=3) is later


def test_an_update_that_does_not_match_renews_nothing() -> None:
    known = lists()
    asks(known, SET)
    assert not asks(known, rule(RecentMode.UPDATE, seconds=2), at=3)
    assert not asks(known, rule(RecentMode.RCHECK, seconds=2), at=3.5)


def test_a_negated_update_renews_what_is_there_but_too_old() -> None:
    known = lists()
    late = rule(RecentMode.UPDATE, seconds=2, negated=True)
    assert asks(known, late)
    assert not asks(known, rule(RecentMode.RCHECK))
    asks(known, SET)
    assert not asks(known, late, at=1)
    assert asks(known, late, at=3)
    assert not asks(known, late, at=4)


def test_a_negated_set_never_matches_and_sets() -> None:
    known = lists()
    assert not asks(known, rule(RecentMode.SET, negated=True))
    assert asks(known, rule(RecentMode.RCHECK))


def test_remove_matches_what_it_removes() -> None:
    known = lists()
    assert not asks(known, REMOVE)
    asks(known, SET)
    assert asks(known, REMOVE)
    assert not asks(known, rule(RecentMode.RCHECK))


def test_a_list_that_has_lost_its_address_is_not_as_new() -> None:
    known = lists()
    asks(known, SET)
    asks(known, REMOVE)
    assert known.holds_any, "a set of nftables keeps a removed element for up to a second"
    known.begin()
    assert not known.holds_any


def test_a_full_list_forgets_the_address_seen_longest_ago() -> None:
    known = lists()
    for address in range(MOST_ADDRESSES):
        asks(known, SET, address)
    asks(known, SET, 0)  # seen again, so that 1 is the oldest
    asks(known, SET, 1000)
    check = rule(RecentMode.RCHECK)
    assert [asks(known, check, n) for n in (0, 1, 2, 1000)] == [True, False, True, True]


def test_reap_drops_the_oldest_address_and_only_that() -> None:
    known = lists()
    for address in (1, 2, 3):
        asks(known, SET, address)
    asks(known, SET, 3, at=10)
    asks(known, rule(RecentMode.RCHECK, seconds=2, reap=True), 3, at=10)
    check = rule(RecentMode.RCHECK)
    assert [asks(known, check, n, at=10) for n in (1, 2, 3)] == [False, True, True]


def test_reap_spares_what_an_update_is_about_to_renew() -> None:
    known = lists()
    asks(known, SET)
    assert asks(known, rule(RecentMode.UPDATE, seconds=2, reap=True, negated=True), at=9)
    assert asks(known, rule(RecentMode.RCHECK), at=9)


def test_hits_are_counted_within_the_seconds() -> None:
    check = rule(RecentMode.RCHECK, seconds=5, hitcount=3)
    known = lists(check)
    for at in (0, 1, 2):
        asks(known, SET, at=at)
    assert asks(known, check, at=3)
    assert not asks(known, check, at=5.5)


def test_times_beyond_what_a_list_keeps_overwrite_the_oldest() -> None:
    check = rule(RecentMode.RCHECK, seconds=100, hitcount=33)
    assert remembered_times((SET,)) == {"a": 32}
    assert remembered_times((SET, check)) == {"a": 64}
    known = lists(SET)
    for at in range(40):
        asks(known, SET, at=at)
    assert asks(known, rule(RecentMode.RCHECK, seconds=100, hitcount=32), at=40)
    assert asks(known, rule(RecentMode.RCHECK, seconds=5, hitcount=5), at=40)
    assert not asks(known, rule(RecentMode.RCHECK, seconds=5, hitcount=6), at=40)


def test_rttl_asks_for_the_ttl_that_was_seen() -> None:
    known = lists()
    asks(known, SET, ttl=64)
    check = rule(RecentMode.RCHECK, rttl=True)
    assert asks(known, check, ttl=64)
    assert not asks(known, check, ttl=63)


def test_the_mask_makes_one_of_many() -> None:
    known = lists()
    asks(known, rule(RecentMode.SET, mask=0xFFFFFF00), 0x0A000001)
    assert asks(known, rule(RecentMode.RCHECK, mask=0xFFFFFF00), 0x0A0000FE)


def test_a_list_is_written_only_if_the_tests_before_it_hold(lab) -> None:
    rules = """
    filter: -A FORWARD -m recent --name seen --rcheck -j DROP
    filter: -A FORWARD -p tcp -m recent --name seen --set -j ACCEPT
    """
    udp = [o.verdict for o in lab.run(rules, *[lab.udp("10.1.0.5", "10.2.0.5", sport=n) for n in (1, 2)])]
    tcp = [o.verdict for o in lab.run(rules, *[lab.tcp("10.1.0.5", "10.2.0.5", sport=n) for n in (1, 2)])]
    assert (udp, tcp) == ([FORWARD, FORWARD], [FORWARD, DROP])


def test_tables_share_a_list_and_a_pause_is_time(lab) -> None:
    rules = """
    mangle: -A PREROUTING -m recent --name seen --rcheck --seconds 2 -j DROP
    filter: -A FORWARD -m recent --name seen --set
    """
    first, second = (lab.udp("10.1.0.5", "10.2.0.5", sport=n) for n in (1, 2))
    assert [o.verdict for o in lab.run(rules, first, Pause(seconds=1), second)] == [FORWARD, DROP]
    assert [o.verdict for o in lab.run(rules, first, Pause(seconds=3), second)] == [FORWARD, FORWARD]


def test_rdest_reads_the_destination(lab) -> None:
    rules = """
    filter: -A FORWARD -m recent --name seen --rcheck --rdest -j DROP
    filter: -A FORWARD -m recent --name seen --set --rsource
    """
    met = lab.udp("10.2.0.5", "10.1.0.5"), lab.udp("10.1.0.5", "10.2.0.5")
    assert [o.verdict for o in lab.run(rules, met[0], lab.udp("10.1.0.6", "10.1.0.5"))] == [FORWARD] * 2
    assert [o.verdict for o in lab.run(rules, *met)] == [FORWARD, DROP]


def test_the_lists_that_have_addresses_are_named_unless_one_has_lost_one() -> None:
    known = lists(SET, REMOVE)
    assert known.filled == frozenset()
    asks(known, rule(RecentMode.RCHECK))
    assert known.filled == frozenset()
    asks(known, SET)
    assert known.filled == {"a"}
    asks(known, REMOVE)
    assert known.filled is None
