"""The structures and maps of the runtime, declared once for C and Python.

Addresses, ports and identifiers are in host byte order, except in ``struct wire``, which is in network byte
order. BCC compiles for this machine and generates code for BPF. Both place a number of 128 bits at the same
offset in a structure only if this offset is a multiple of 16. The widths of a tuple's members follow from
this, and they leave no padding in a key.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum, IntFlag
from functools import cache
from typing import Final

from translate.bpf.layout.counters import COUNTERS
from translate.bpf.layout.numbers import SPIN_LOCK, U8, U16, U32, U64
from translate.bpf.layout.programs import PROGRAMS
from translate.bpf.layout.states import SET_ELEMENT, state_structures
from translate.bpf.layout.structures import Declarator, DeclaredMap, Number, Opaque, Structure
from translate.dataclass import dataclass
from translate.ir import Family

__all__ = [
    "ARGUMENTS",
    "CONNECTIONS",
    "ENTRY",
    "HASHED_SIZE",
    "RECENT_SIZE",
    "U32",
    "DeviceFlag",
    "RuntimePart",
    "RuntimeTypes",
    "count_list",
    "device_flags",
    "lists_of_connections",
    "runtime_maps",
    "runtime_types",
    "slot_sizes",
]

ARGUMENTS: Final = 12
"""The number of 32-bit words for the numbers of actions in a lookup's entry.

They hold two addresses of IPv6, two ports, a mark and its mask.
"""

CONNECTIONS: Final = 65536
"""The number of connections that a program remembers by default."""

RECENT_SIZE: Final = 65536
"""The capacity in addresses of all lists of ``-m recent`` together."""

HASHED_SIZE: Final = 65536
"""The capacity in buckets of all tables of ``-m hashlimit`` together."""

_COUNTED_TOGETHER: Final = 1 << 19
"""The capacity in connections of all lists of ``-m connlimit`` together."""

_LOCKS: Final = 1024
_DEVICES: Final = 1024
_PREFIXES: Final = 4096

_PACKET: Final = Opaque("struct pkt")

ENTRY: Final = Structure(
    "entry",
    (Declarator(U32, "code"), Declarator(U32, "argument", ARGUMENTS)),
    "The value of a lookup: the code of the actions, and their numbers.",
)


class RuntimePart(Enum):
    """A part of the runtime that only some programs contain; the value is the name of its file."""

    RECENT = "recent"
    IPSET = "ipset"
    FILLED_SET = "filledset"
    NTH = "nth"
    LIMIT = "limit"
    WORDS = "words"
    QUOTA = "quota"
    HASHLIMIT = "hashlimit"
    HASHWINDOW = "hashwindow"
    CLUSTER = "cluster"
    NPT = "npt"
    CONNLIMIT = "connlimit"
    CGROUP = "cgroup"
    PATH_MTU = "pathmtu"
    HMARK = "hmark"
    OPTIONS = "options"
    BYTECODE = "bytecode"
    WAYS_BACK = "waysback"


class DeviceFlag(IntFlag):
    """The bits in ``flags`` of ``struct device``."""

    ROUTE_LOCALNET = 1
    RP_STRICT = 2
    RP_LOOSE = 4
    ACCEPT_LOCAL = 8
    """Packets may have an address of the node as their source."""
    BRIDGE = 16
    """Packets that come in have passed ``br_netfilter``."""
    DIRECT = 32
    """The program may forward from and to the device without the stack; see ``forward.h``."""
    PLAIN_RULES = 64
    """No routing rule depends on a property that ``bpf_fib_lookup`` ignores, such as the mark."""


def device_flags() -> str:
    """Return the macros of :class:`DeviceFlag`."""
    return "".join(f"#define DEVICE_{flag.name} {flag.value}\n" for flag in DeviceFlag)


@dataclass(frozen=True, slots=True)
class RuntimeTypes:
    """The types of one family's programs; ``structures`` are in the order of declaration."""

    words: int
    numbers: tuple[Number, ...]
    structures: Mapping[str, Structure]

    def declarations(self, parts: Collection[RuntimePart]) -> str:
        """Return the declarations in C for a program with these optional parts."""
        heads = (f"#define ADDRESS_WORDS {self.words}\n", *(number.declaration() for number in self.numbers))
        bodies = (
            structure.declaration()
            for name, structure in self.structures.items()
            if name not in _OPTIONAL or _OPTIONAL[name] in parts
        )
        return "\n".join(("".join(heads), device_flags(), *bodies))


_OPTIONAL: Final = {
    "recent_key": RuntimePart.RECENT,
    "turn": RuntimePart.NTH,
    "bucket": RuntimePart.LIMIT,
    "quota": RuntimePart.QUOTA,
    "set_element": RuntimePart.FILLED_SET,
    **dict.fromkeys(("count_key", "counted"), RuntimePart.CONNLIMIT),
    **dict.fromkeys(("hash_key", "hash_bucket"), RuntimePart.HASHLIMIT),
    "hash_window": RuntimePart.HASHWINDOW,
    **dict.fromkeys(("way_key", "way_back"), RuntimePart.WAYS_BACK),
}


@cache
def runtime_types(family: Family) -> RuntimeTypes:
    """Return the types of a family's program."""
    words, reaches = family.bits // 32, 1 if family is Family.IP else 4
    if family is Family.IP:
        numbers = Number("addr", 4, "u32"), Number("tuple_port", 2, "u16"), Number("tuple_proto", 4, "u32")
    else:
        addr = Number("addr", 16, "unsigned __int128")
        numbers = addr, Number("tuple_port", 4, "u32"), Number("tuple_proto", 8, "u64")
    addr, port, proto = numbers
    wire = Structure(
        "wire",
        (Declarator(U32, "word", words),),
        "An address in network byte order, as in packets and in keys of maps.",
    )
    tuple_ = Structure(
        "tuple",
        (
            Declarator(addr, "src"),
            Declarator(addr, "dst"),
            Declarator(port, "sport"),
            Declarator(port, "dport"),
            Declarator(proto, "proto"),
        ),
        "One direction of a connection. For ICMP sport is the identifier, dport type << 8 | code.",
    )
    side = Structure(
        "side",
        (
            *(Declarator(U32, name) for name in ("end", "maxend", "maxwin", "maxack")),
            Declarator(U8, "scale"),
            Declarator(U8, "flags"),
            Declarator(U16, "spare"),
        ),
        "The state of one end of a TCP connection (struct ip_ct_tcp_state).",
    )
    connection = Structure(
        "conn",
        (
            Declarator(tuple_, "orig"),
            Declarator(tuple_, "reply"),
            Declarator(U64, "expires", comment="ns of coarse_now()"),
            Declarator(U64, "since", comment="when a UDP stream began"),
            Declarator(U32, "status"),
            Declarator(U32, "mark"),
            Declarator(side, "client"),
            Declarator(side, "server"),
            *(Declarator(U32, name) for name in ("last_seq", "last_ack", "last_end")),
            Declarator(U16, "last_win"),
            Declarator(U8, "last_index", comment="of the last segment, as tcp_index()"),
            *(Declarator(U8, name) for name in ("last_dir", "last_scale", "last_flags", "tcp_state")),
            *(Declarator(U8, name) for name in ("retransmissions", "simultaneous", "challenge")),
            Declarator(U16, "touched", comment="when its entry of `replies` was last used, as touch_time()"),
            Declarator(U32, "masqueraded", comment="the device whose address MASQUERADE took; 0: none"),
            Declarator(U32, "spare"),
        ),
        "A connection, with the state of TCP.",
    )
    device = Structure(
        "device",
        (
            Declarator(U64, "name", 2),
            Declarator(addr, "address", comment="the address that REDIRECT binds; 0: none"),
            Declarator(addr, "near", reaches, "IPv6: addresses of smaller scopes, by reach_of()"),
            Declarator(U32, "flags", comment="DEVICE_*"),
            Declarator(U32, "group", comment="of `ip link set group`"),
            Declarator(U8, "mac", 8, "its hardware address, in six bytes"),
        ),
    )
    prefix = Structure("prefix", (Declarator(U32, "length"), Declarator(wire, "address")))
    local = Structure(
        "local",
        (
            Declarator(U32, "type", comment="RTN_*"),
            Declarator(U32, "oif"),
            Declarator(U32, "own", comment="the interface that got this address last; 0 if it is not local"),
        ),
    )
    route = Structure(
        "route",
        (
            Declarator(addr, "via", comment="0: the destination is on the link"),
            Declarator(
                addr,
                "source",
                comment="the preferred source of packets made here; in IPv6 the network's anycast address",
            ),
            Declarator(U32, "oif"),
            Declarator(U32, "mtu", comment="of the route; 0: that of its device"),
            Declarator(U32, "spare", 2),
        ),
    )
    source_prefix = Structure(
        "source_prefix",
        (
            Declarator(U32, "length", comment="at least 32, because the interface is always compared"),
            Declarator(U32, "oif"),
            Declarator(wire, "address"),
        ),
    )
    settings = Structure(
        "settings",
        (
            *(Declarator(U32, n) for n in ("tcp_loose", "tcp_liberal", "checksum", "tcp_max_retrans")),
            Declarator(U32, "tcp_ignore_invalid_rst"),
            Declarator(U32, "tcp_timeout", 10, "by state"),
            *(Declarator(U32, n) for n in ("tcp_retransmitted", "tcp_unacknowledged", "udp", "udp_stream")),
            Declarator(U32, "icmp", comment="of this family"),
            *(Declarator(U32, n) for n in ("gre", "gre_stream", "generic", "sctp", "sctp_established")),
            *(Declarator(U32, n) for n in ("dccp", "dccp_open")),
            Declarator(U32, "tai_lead", comment="seconds of TAI before UTC"),
        ),
        "The sysctls net.netfilter.nf_conntrack_*, whose timeouts are seconds, and the lead of TAI.",
    )
    structures = (
        *(wire, tuple_, side, connection, device, prefix, local, route, source_prefix, settings),
        Structure("bytes", (Declarator(U8, "data", 512),)),
        Structure("crc_table", (Declarator(U32, "after", 256),), "The CRC of each byte after another."),
        Structure("lock", (Declarator(SPIN_LOCK, "lock"),)),
        ENTRY,
        SET_ELEMENT,
        *state_structures(wire, tuple_),
    )
    return RuntimeTypes(words, numbers, {structure.name: structure for structure in structures})


_MOST_SLOTS: Final = 1 << 15
"""The greatest number of slots for ``tc_index``, whose highest bit has another meaning."""

_SLOTS_EACH: Final = 256


def slot_sizes(processors: int) -> dict[str, int]:
    """Return the macros for slots, all powers of two; with very many processors, each has fewer slots."""
    processors = 1 << (processors - 1).bit_length()
    each = min(_SLOTS_EACH, _MOST_SLOTS // processors)
    return {"SLOTS_EACH": each, "SLOTS": each * processors}


def count_list(family: Family, counted: int) -> Structure:
    """Return the structure of a list of ``-m connlimit`` with room for so many connections."""
    return Structure(
        "count_list",
        (
            Declarator(U64, "checked", comment="when outdated connections were removed, as coarse_now()"),
            Declarator(U32, "end", comment="the place after the last connection"),
            *(Declarator(U32, name) for name in ("count", "checked_count", "spare")),
            Declarator(runtime_types(family).structures["counted"], "item", counted),
        ),
        "The connections of an address that have met a rule.",
    )


def lists_of_connections(counted: int) -> int:
    """Return the number of lists of ``-m connlimit`` of which each has room for so many connections."""
    return _COUNTED_TOGETHER // max(counted, 1)


def runtime_maps(
    family: Family,
    parts: Collection[RuntimePart] = (),
    *,
    counters: int = 0,
    buckets: int = 0,
    quotas: int = 0,
    counted: int = 0,
    cgroups: int = 0,
    connections: int = CONNECTIONS,
    slots: int = _MOST_SLOTS,
) -> tuple[DeclaredMap, ...]:
    """Return the maps of the runtime with these optional parts.

    The arguments are the sizes: ``connections``, ``slots``, ``counters`` of ``statistic --mode nth``,
    ``buckets`` of ``-m limit``, ``quotas``, ``counted`` connections in a list of ``-m connlimit``, and
    ``cgroups`` of ``-m cgroup --path``.
    """
    types = runtime_types(family)
    addr, s = types.numbers[0], types.structures

    def table(name: str, kind: str, value: Number | Opaque | Structure, size: int = 1) -> DeclaredMap:
        return DeclaredMap(name=name, kind=kind, key=U32, value=value, size=size)

    def of_connections(name: str, value: Structure) -> DeclaredMap:
        return DeclaredMap(
            name=name,
            kind="lru_hash",
            key=s["tuple"],
            value=value,
            size=connections,
            size_macro="CONNECTIONS",
        )

    def trie(name: str, key: Structure, value: Number | Structure, size: int = _PREFIXES) -> DeclaredMap:
        flags = "BPF_F_NO_PREALLOC"
        return DeclaredMap(name=name, kind="lpm_trie", key=key, value=value, size=size, flags=flags)

    maps = [
        of_connections("conns", s["conn"]),
        of_connections("replies", s["tuple"]),
        of_connections("sources", s["tuple"]),
        DeclaredMap(name="slots", kind="array", key=U32, value=_PACKET, size=slots, size_macro="SLOTS"),
        table("slot_counter", "percpu_array", U32),
        table("scratch", "percpu_array", s["bytes"]),
        table("devices", "hash", s["device"], _DEVICES),
        trie("locals", s["prefix"], s["local"]),
        trie("routes", s["prefix"], s["route"]),
        trie("primary", s["source_prefix"], addr),
        table("settings", "array", s["settings"]),
        table("gate", "array", U32),
        table("programs", "prog", U32, len(PROGRAMS)),
        table("counters", "percpu_array", U64, len(COUNTERS)),
        table("crc_tables", "array", s["crc_table"]),
        table("locks", "array", s["lock"], _LOCKS),
    ]
    if RuntimePart.RECENT in parts:
        key = s["recent_key"]
        maps.append(DeclaredMap(name="recents", kind="lru_hash", key=key, value=U64, size=RECENT_SIZE))
    if RuntimePart.NTH in parts:
        maps.append(table("turns", "array", s["turn"], counters))
    if RuntimePart.LIMIT in parts:
        maps.append(table("buckets", "array", s["bucket"], buckets))
    if RuntimePart.QUOTA in parts:
        maps.append(table("quotas", "array", s["quota"], quotas))
    if RuntimePart.HASHLIMIT in parts:
        key, value = s["hash_key"], s["hash_bucket"]
        maps.append(DeclaredMap(name="hashed", kind="lru_hash", key=key, value=value, size=HASHED_SIZE))
    if RuntimePart.CGROUP in parts:
        maps.append(table("cgroups", "array", U64, max(cgroups, 1)))
    if RuntimePart.CONNLIMIT in parts:
        key, value = s["count_key"], count_list(family, counted)
        size = lists_of_connections(counted)
        maps.append(DeclaredMap(name="counted", kind="lru_hash", key=key, value=value, size=size))
        maps.append(table("blank_lists", "array", value))
    if RuntimePart.HASHWINDOW in parts:
        key, value = s["hash_key"], s["hash_window"]
        maps.append(DeclaredMap(name="windows", kind="lru_hash", key=key, value=value, size=HASHED_SIZE))
    if RuntimePart.WAYS_BACK in parts:
        maps.append(trie("ways_back", s["way_key"], s["way_back"], 4 * _PREFIXES))
    return tuple(maps)
