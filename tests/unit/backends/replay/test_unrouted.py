from __future__ import annotations

from backends.replay.unrouted import LEFT_OUT_OR_DROPPED, NO_ERROR, UnroutedPackets


def test_the_first_five_errors_of_a_source_are_never_left_out() -> None:
    unrouted = UnroutedPackets()
    found = [unrouted.record(7, total, total + 1) for total in range(7)]
    assert found == [NO_ERROR] * 5 + [LEFT_OUT_OR_DROPPED] * 2
    assert unrouted.record(8, 7, 8) == NO_ERROR


def test_no_error_is_certain_after_packets_of_an_unknown_source() -> None:
    unrouted = UnroutedPackets()
    assert unrouted.record(7, 0, 1) == NO_ERROR
    assert unrouted.record(8, 3, 4) == LEFT_OUT_OR_DROPPED
    assert unrouted.record(9, 4, 5) == LEFT_OUT_OR_DROPPED
