"""``-m connlabel`` and ``-m cluster``: labels and hashes of connections.

* ``ct label`` ends the rule for a packet without a connection (``nft_ct_get_eval``). A label is added only if
  the packet has a connection, and the rule continues only for such packets. So a test for a connection stands
  before the statement.
* ``jhash`` of the original source is ``xt_cluster_hash``: both scale Jenkins' hash of the address. It ends
  the rule without a connection, as the match does even if it is negated.
* A multicast frame with a packet to a unicast address becomes a frame to this machine before the match is
  evaluated. A separate rule does this in PREROUTING, and in chains that packets reach from there alone. It
  repeats the tests before the match, which must therefore not count or draw.
"""

from __future__ import annotations

from translate.dataclass import replace
from translate.ir import (
    Apply,
    ClusterShare,
    ConnectionState,
    ConnLabel,
    Family,
    Field,
    FieldTest,
    Hook,
    Interval,
    PacketType,
    SetTest,
    Test,
)
from translate.nft.legal import AddLabel, HashedTo, HasLabel, Part
from translate.nft.limits.refusal import CannotSay

__all__ = ["hashed_to", "labelled", "to_this_machine"]

_TRACKED = FieldTest(
    field=Field.CT_STATE,
    values=tuple(
        Interval.point(state)
        for state in (ConnectionState.ESTABLISHED, ConnectionState.RELATED, ConnectionState.NEW)
    ),
)
_GROUPS = {
    Family.IP: Interval(0xE0000000, 0xEFFFFFFF),
    Family.IP6: Interval(0xFF << 120, (1 << 128) - 1),
}


_WITHOUT_GROUPS = frozenset({Hook.FORWARD, Hook.OUTPUT, Hook.POSTROUTING})


def labelled(test: ConnLabel) -> tuple[Part, ...]:
    """Return the matches and the statement of a test that is not negated. Raises CannotSay."""
    if test.negated:
        reason = "--set with a negated --label holds only for packets without a connection"
        raise CannotSay("connlabel-negated", reason)
    return (_TRACKED, AddLabel(test.number)) if test.add else (HasLabel(test.number),)


def hashed_to(test: ClusterShare, family: Family) -> HashedTo:
    """Return the match on the hash. Raises CannotSay."""
    if family is Family.IP6:
        reason = "-m cluster hashes the first 32 bits of an IPv6 address; nftables hashes all of them"
        raise CannotSay("cluster6", reason)
    if test.total == 1:
        raise CannotSay("cluster-single", "nft has no hash with a single possible value")
    values = tuple(n for n in range(test.total) if bool(test.nodes >> n & 1) is not test.negated)
    if not values:
        raise CannotSay("cluster-single", "the rule selects no node of the cluster")
    return HashedTo(test.total, test.seed, values)


def to_this_machine(apply: Apply, family: Family, hooks: frozenset[Hook]) -> tuple[Test, ...] | None:
    """Return the tests for the multicast frames that ``-m cluster`` takes; None if there can be none.

    ``hooks`` are those from which packets reach the rule. nft changes the type of a packet in PREROUTING
    only, and the stack forwards no packet of another type (``nft_meta_set_validate``, ``ip_forward``). Raises
    CannotSay.
    """
    at = next((i for i, test in enumerate(apply.tests) if isinstance(test, ClusterShare)), None)
    if at is None or hooks <= _WITHOUT_GROUPS:
        return None
    if hooks != {Hook.PREROUTING}:
        reason = "nftables changes the type of multicast frames only in chains that PREROUTING alone reaches"
        raise CannotSay("cluster-hook", reason)
    before = apply.tests[:at]
    if not all(isinstance(test, FieldTest | SetTest) for test in before):
        raise CannotSay("cluster-order", "a test before -m cluster counts, draws or keeps a state")
    single = FieldTest(field=Field.DADDR, values=(_GROUPS[family],), negated=True)
    several = FieldTest(field=Field.PACKET_TYPE, values=(Interval.point(PacketType.MULTICAST),))
    return (*(replace(t) for t in before), single, several)
