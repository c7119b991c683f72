"""Notes on limits and counters that differ from those of iptables.

A note is not a refusal: the translation is complete, and the note tells its user about the difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from translate.errors import Note
from translate.ir import (
    ACCOUNTS,
    CLOCKS,
    ConnectionLimit,
    ConnectionState,
    Duplicate,
    Family,
    Field,
    FieldTest,
    FillChecksum,
    Interval,
    Limit,
    LimitMss,
    Origin,
    Program,
    Recent,
    RecentMode,
    SetTcpFlags,
    SetUpdate,
    SynProxy,
    TcpFlag,
    Test,
    alternatives,
    flat,
)
from translate.nft.limits.refusal import BACKEND
from translate.passes.inventory import Inventory
from translate.passes.recents import CAPACITY, RecentList

_ZONED: Final = re.compile(r" --(kerneltz|localtz)(?= |$)")

__all__ = [
    "notes_on_accounts",
    "notes_on_bridges",
    "notes_on_checksums",
    "notes_on_congestion",
    "notes_on_connections",
    "notes_on_copies",
    "notes_on_counted_ports",
    "notes_on_counters_of_connections",
    "notes_on_filled_sets",
    "notes_on_hits",
    "notes_on_later_fragments",
    "notes_on_limits",
    "notes_on_lists",
    "notes_on_removals",
    "notes_on_reverse_paths",
    "notes_on_segment_sizes",
    "notes_on_syn_proxies",
    "notes_on_weekdays",
]

_BRIDGES: Final = (
    "packets that come in through a bridge are assumed to have passed br_netfilter, which is true while"
    " net.bridge.bridge-nf-call-iptables (IPv6: -ip6tables) is 1"
)


def notes_on_accounts(accounts: Mapping[str, Origin], counters: Mapping[str, str]) -> tuple[Note, ...]:
    """Return a note for each object of ``-m nfacct``; ``counters`` has the names of their nft counters."""
    return tuple(
        Note(
            origin,
            BACKEND,
            "nfacct",
            f"the nfacct object {name} is no longer updated; the counter {counters[name]} counts instead. The"
            " rule matches every packet, also if the object had a quota",
        )
        for name, origin in accounts.items()
    )


def notes_on_filled_sets(sets: Mapping[str, tuple[str, Origin]]) -> tuple[Note, ...]:
    """Return a note for each ipset that rules change: the name of its nft set, and the first of the rules."""
    return tuple(
        Note(
            origin,
            BACKEND,
            "set-update",
            f"the ipset {name} is no longer changed; the set {called} takes its place, and programs that use"
            " the ipset do not see it",
        )
        for name, (called, origin) in sets.items()
    )


def notes_on_lists(lists: Iterable[RecentList], size: int, keyed_size: int) -> tuple[Note, ...]:
    """Return a note for each list of ``-m recent`` that rules fill and test.

    ``size`` is the capacity in addresses of a set for one list, and ``keyed_size`` that of a set for many
    lists.
    """
    return tuple(
        Note(
            recent_list.origin,
            BACKEND,
            "recent-capacity",
            f"{_lists(recent_list)} of -m recent holds {CAPACITY} addresses and forgets the oldest; "
            f"{_set(recent_list, size, keyed_size)}, and accepts no more until one has timed out",
        )
        for recent_list in lists
        if recent_list.limited
    )


def notes_on_hits(lists: Iterable[RecentList]) -> tuple[Note, ...]:
    """Return a note for each list of ``-m recent`` with counted packets, because its sets have no lock."""
    return tuple(
        Note(
            recent_list.origin,
            BACKEND,
            "recent-hits",
            f"{_lists(recent_list)} of -m recent may count two packets of one address as one, if two"
            " processors handle them at the same time",
        )
        for recent_list in lists
        if recent_list.filled and recent_list.hits
    )


def notes_on_removals(inventory: Inventory) -> tuple[Note, ...]:
    """Return a note for each list or set from which rules remove addresses that other rules add.

    A removed element stays in the hash table of the set until the kernel clears it, once a second
    (``nft_rhash_gc``); one bucket of the table takes 16 elements (``RHT_ELASTICITY``).
    """
    lists = [(test, f"the list {test.name}", o) for test, o in inventory.tests_of_type(Recent)]
    sets = [(test, f"the ipset {test.name}", o) for test, o in inventory.tests_of_type(SetUpdate)]
    filled = {name for test, name, _ in lists if test.mode is RecentMode.SET}
    filled |= {name for test, name, _ in sets if not test.delete}
    removed = [(name, origin) for test, name, origin in lists if test.mode is RecentMode.REMOVE]
    removed += [(name, origin) for test, name, origin in sets if test.delete]
    first = {name: origin for name, origin in reversed(removed) if name in filled}
    text = (
        "an element that is removed from {} and added again more than 16 times in a second may be missing for"
        " up to a second"
    )
    return tuple(Note(origin, BACKEND, "set-removal", text.format(name)) for name, origin in first.items())


def _lists(recent_list: RecentList) -> str:
    return "each list" if recent_list.key else f"the list {recent_list.name}"


def _set(recent_list: RecentList, size: int, keyed_size: int) -> str:
    return f"the set that stands for them holds {keyed_size}" if recent_list.key else f"the set holds {size}"


def notes_on_limits(buckets: Iterable[tuple[Limit, Origin]]) -> tuple[Note, ...]:
    """Return a note for each bucket whose size is not a whole number of packets.

    Buckets of nft hold whole packets only. The first burst is the same. After it, the fraction lets the next
    packet pass earlier through xt_limit.
    """
    return tuple(
        Note(
            origin,
            BACKEND,
            "limit-burst",
            f"the bucket of xt_limit holds {test.capacity / test.interval:.2f} packets; a limit of nft holds"
            f" whole packets only, {test.burst} here: after a burst, the next packet passes up to"
            f" {test.capacity % test.interval / 1e9:.3g} s later",
        )
        for test, origin in buckets
        if test.capacity % test.interval * 100 > test.interval
    )


def notes_on_counted_ports(origins: Iterable[Origin]) -> tuple[Note, ...]:
    """Return a note for each DNAT with a port shift (``/baseport``), which becomes a map of ports."""
    text = (
        "if a client already has a connection from the same source port to the new address and port,"
        " iptables takes the next port of the range; nftables keeps the port and changes the source port"
    )
    return tuple(Note(origin, BACKEND, "nat-port-shift", text) for origin in dict.fromkeys(origins))


def notes_on_bridges(inventory: Inventory) -> tuple[Note, ...]:
    """Return a note for each rule with ``-m physdev``.

    ``physdev`` tests whether ``br_netfilter`` has recorded a bridge port of the packet. It records one for a
    packet from a bridge while ``net.bridge.bridge-nf-call-iptables`` is 1, which is the default and required
    by Kubernetes. nftables can only test whether the packet came in through a bridge
    (``nft_meta_store_ifkind``).
    """
    origins = inventory.testing({Field.BRIDGED})
    return tuple(dict.fromkeys(Note(origin, BACKEND, "physdev", _BRIDGES) for origin in origins))


def notes_on_reverse_paths(inventory: Inventory) -> tuple[Note, ...]:
    """Return a note for each rule with ``-m rpfilter`` over IPv6 (``ip6t_rpfilter``, ``nft_fib6_eval``)."""
    if inventory.program.family is Family.IP:
        return ()
    text = (
        "if two devices have a route to the same prefix, rpfilter uses the route of the packet's own device,"
        " and nftables the first route"
    )
    origins = inventory.testing({Field.REVERSE_PATH, Field.REVERSE_PATH_BY_MARK})
    return tuple(dict.fromkeys(Note(origin, BACKEND, "rpfilter6", text) for origin in origins))


def notes_on_counters_of_connections(inventory: Inventory) -> Iterator[Note]:
    """Yield a note for each rule that reads the packets or bytes of a connection."""
    text = (
        "the kernel counts the packets of a connection only while net.netfilter.nf_conntrack_acct is 1;"
        " xt_connbytes sets it when its rule is loaded, but nftables does not: set it before the first"
        " connection"
    )
    origins = inventory.testing(ACCOUNTS)
    return (Note(origin, BACKEND, "connbytes-accounting", text) for origin in dict.fromkeys(origins))


def notes_on_weekdays(inventory: Inventory) -> Iterator[Note]:
    """Yield a note for each rule that tests the day of the week.

    ``xt_time`` computes the day in UTC, and nftables computes it in the kernel's time zone
    (``nft_meta_weekday``, ``sys_tz``). nftables computes the time of day in UTC (``nft_meta_hour``); with
    ``--kerneltz``, ``xt_time`` computes days and times in the kernel's time zone.
    """
    zoned = (
        "nftables computes dates and times of day in UTC, but xt_time with --kerneltz computes them in"
        " the kernel's time zone; that is UTC unless a program sets it, as systemd does if the hardware"
        " clock runs in local time"
    )
    text = (
        "nftables computes the day of the week in the kernel's time zone, but xt_time computes it in"
        " UTC; that zone is UTC unless a program sets it, as systemd does if the hardware clock runs in"
        " local time"
    )
    weekdays = set(inventory.testing({Field.CLOCK_WEEKDAY}))
    for origin in dict.fromkeys(inventory.testing(CLOCKS)):
        if _ZONED.search(origin.text):
            yield Note(origin, BACKEND, "time-zone", zoned)
        elif origin in weekdays:
            yield Note(origin, BACKEND, "time-zone", text)


def notes_on_connections(inventory: Inventory) -> Iterator[Note]:
    """Yield a note for each rule that counts connections and can meet one that is already established.

    Both xt_connlimit and nftables count a connection when it begins. The first packet of an established
    connection whose address has no count yet begins a count of 1 in xt_connlimit (``insert_tree``), and none
    in nftables (``nft_connlimit_do_eval``). If no connection of an address is left after a packet,
    xt_connlimit takes the count of 0 for a failure and drops the packet (``connlimit_mt``).
    """
    text = (
        "a connection does not count if it was established before its first packet came to this rule;"
        " xt_connlimit counts the first such connection of each address. xt_connlimit also drops the packet"
        " that ends the only connection of its address, and nftables lets it pass. A test for --syn or NEW"
        " in the same rule avoids both differences"
    )
    if ConnectionLimit not in inventory.tests:
        return
    for chain in inventory.program.chains:
        for statement in chain.statements:
            counts = any(isinstance(test, ConnectionLimit) for test in statement.tests)
            if counts and not any(map(_begins, statement.tests)):
                yield from (
                    Note(origin, BACKEND, "connlimit-established", text)
                    for origin in dict.fromkeys(a.origin for a in alternatives(statement))
                )


def _begins(test: Test) -> bool:
    """Return whether a test holds only for packets of connections that are not established."""
    match test:
        case FieldTest(field=Field.CT_STATE, mask=None, negated=False, values=values):
            return all(v == Interval.point(ConnectionState.NEW) for v in values)
        case FieldTest(field=Field.TCP_FLAGS, mask=int() as mask, negated=False, values=values):
            both = TcpFlag.SYN | TcpFlag.ACK
            return mask & both == both and all(
                isinstance(v, Interval) and v.is_point and v.low & both == TcpFlag.SYN for v in values
            )
        case _:
            return False


def notes_on_segment_sizes(inventory: Inventory) -> Iterator[Note]:
    """Yield a note for each TCPMSS rule: nftables changes an MSS option but does not add one.

    Over ``lo``, nftables takes the MTU of the device (``rt mtu``); ``tcpmss_reverse_mtu`` also looks at the
    route to the packet's source.
    """
    text = (
        "nftables adds no MSS option to a SYN that has none; TCPMSS adds one of at most 536 (IPv6: 1220)."
        " --clamp-mss-to-pmtu in nftables leaves packets over lo as they are"
    )
    yield from (Note(origin, BACKEND, "tcpmss", text) for origin in inventory.doing(LimitMss))


def notes_on_congestion(inventory: Inventory) -> Iterator[Note]:
    """Yield a note for each ECN rule that changes segments: nftables finds no header in a later fragment."""
    text = (
        "nftables leaves later fragments as they are; ECN changes bits of their data as if they began with a"
        " header of TCP. Conntrack, if it is used, reassembles fragments before this rule"
    )
    yield from (Note(origin, BACKEND, "ecn", text) for origin in inventory.doing(SetTcpFlags))


def notes_on_later_fragments(program: Program) -> Iterator[Note]:
    """Yield a note for each rule that treats later fragments differently in iptables.

    Only for Programs without an expression that makes the kernel reassemble fragments. ``tcpmss_mt`` and
    ``match_tcp`` of ``xt_ecn`` read data of later fragments of IPv4.
    """
    read = "iptables reads data of later fragments as if they began with a header of TCP; nftables does not"
    for chain in program.chains:
        for statement in chain.statements:
            tests = [test for test in flat(statement.tests) if isinstance(test, FieldTest)]
            excluded = any(test.field in _OF_HEADERS and not test.reads_data for test in tests)
            for each in alternatives(statement):
                if program.family is Family.IP6 or excluded:
                    continue
                if any(test.reads_data for test in tests):
                    yield Note(each.origin, BACKEND, "later-fragments", read)


_OF_HEADERS: Final = frozenset({Field.SPORT, Field.DPORT, Field.TCP_FLAGS})
"""Fields that ``xt_tcp`` and ``xt_multiport`` find in no later fragment."""


def notes_on_syn_proxies(inventory: Inventory) -> Iterator[Note]:
    """Yield a note for each SYNPROXY rule, which checks the checksums of more segments than nftables.

    nftables' statement takes segments with both SYN and ACK as well, so a test of the flags stands before it.
    """
    text = (
        "SYNPROXY drops every segment with a wrong checksum; nftables drops those with SYN or ACK alone,"
        " and evaluates the next rules for the others"
    )
    yield from (Note(origin, BACKEND, "synproxy", text) for origin in inventory.doing(SynProxy))


def notes_on_copies(program: Program) -> Iterator[Note]:
    """Yield a note for each TEE rule with a device, which nft looks up when it loads the rules."""
    text = (
        "nft looks up the device of dup when it loads the rules: the device must exist then, and the rules"
        " must be loaded again if the device is replaced"
    )
    for chain in program.chains:
        for statement in chain.statements:
            for each in alternatives(statement):
                if any(isinstance(action, Duplicate) and action.device for action in each.actions):
                    yield Note(each.origin, BACKEND, "tee", text)


def notes_on_checksums(inventory: Inventory) -> Iterator[Note]:
    """Yield a note for each CHECKSUM rule: nftables has no statement for it.

    Every packet goes the same way and leaves the node with the same checksum (``skb_checksum_help`` does
    what the network card would do). Readers inside of the node see the difference: the raw sockets of old
    DHCP clients in virtual machines, for which libvirt and Shorewall write the rule.
    """
    text = (
        "CHECKSUM has no effect: nftables has no statement that computes a checksum that was left to the"
        " network card. Packets leave the node as before, but an old DHCP client in a virtual machine may not"
        " accept an answer of the node; tc's action csum on the device computes the checksum, too"
    )
    yield from (Note(origin, BACKEND, "checksum", text) for origin in inventory.doing(FillChecksum))
