"""The memory of a packet."""

from __future__ import annotations

import sys

from backends.model.packet import Packet
from backends.model.withfields import with_fields
from translate.ir import Family


def test_a_packet_and_its_copies_have_no_room_for_more_fields() -> None:
    packet = Packet(family=Family.IP, src=1, dst=2, proto=17, sport=3, dport=4)
    copy = with_fields(with_fields(packet, ttl=5), mark=6)
    assert sys.getsizeof(vars(packet)) == sys.getsizeof(vars(copy)) == sys.getsizeof(dict(vars(copy)))
    assert copy == Packet(family=Family.IP, src=1, dst=2, proto=17, sport=3, dport=4, ttl=5, mark=6)
