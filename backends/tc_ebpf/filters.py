"""Filters of ``clsact``, which attach a program to a device next to other filters.

Each family has its own preference, because all filters of one preference are for one protocol
(``tcf_chain_tp_find``). A filter for IPv4 does not see other packets, nor packets with a VLAN tag
(``skb_protocol``), which belong to the VLAN device.

The kernel runs filters in the order of their preference until one decides. Nfparity's filter decides about
its packets (``TC_ACT_OK``, with the number of a slot in ``tc_classid``, which becomes ``tc_index``) and
leaves others to the next filter (``TC_ACT_UNSPEC``). So filters with smaller preferences must not decide
about packets that it must see, and filters with greater ones see the packets that it leaves.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterator
from enum import Enum
from typing import Final

from backends.testbed.netlink import Netlink, attribute, attributes, nested
from translate.dataclass import dataclass
from translate.errors import MachineError
from translate.ir import Family

__all__ = ["PREFERENCES", "Filter", "Filters", "Side", "read_filter"]

PREFERENCES: Final = {Family.IP: 40960, Family.IP6: 40961}
"""The preferences, below the kernel's defaults, which go down from 49152 (``tcf_auto_prio``)."""

_PREFIX: Final = "nfparity_"
_HANDLE: Final = 1
_PROTOCOLS: Final = {Family.IP: 0x0800, Family.IP6: 0x86DD}
_ALL_PROTOCOLS: Final = 0x0003

_RTM_NEWQDISC, _RTM_DELQDISC, _RTM_GETQDISC = 36, 37, 38
_RTM_NEWTFILTER, _RTM_DELTFILTER, _RTM_GETTFILTER = 44, 45, 46
_CREATE: Final = 0x400
_EXCL: Final = 0x200
_REPLACE: Final = 0x100
_CLSACT: Final = 0xFFFFFFF1
_CLSACT_HANDLE: Final = 0xFFFF0000
_TCA_KIND, _TCA_OPTIONS = 1, 2
_BPF_CLASSID, _BPF_FD, _BPF_NAME, _BPF_FLAGS, _BPF_TAG, _BPF_ID = 3, 6, 7, 8, 10, 11
_DIRECT_ACTION: Final = 1


class Side(Enum):
    """The two sides of a device; the value is ``clsact``'s name for it (``TC_H_MIN_INGRESS``)."""

    INGRESS = 0xFFFFFFF2
    EGRESS = 0xFFFFFFF3

    @property
    def word(self) -> str:
        """The name in tc(8)."""
        return self.name.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A filter as the kernel lists it. ``protocol`` is an EtherType; 3 is every packet.

    ``name``, ``tag`` and ``program`` (its number) are those of a BPF program; a filter of another kind has
    empty ones.
    """

    index: int
    side: Side
    preference: int
    protocol: int
    handle: int
    kind: str
    name: str = ""
    tag: str = ""
    program: int = 0

    @property
    def ours(self) -> bool:
        """True if nfparity attached it."""
        return self.kind == "bpf" and self.name.startswith(_PREFIX) and self.family is not None

    @property
    def family(self) -> Family | None:
        """The family with this preference, or None."""
        return next((f for f, preference in PREFERENCES.items() if preference == self.preference), None)

    def runs_before(self, family: Family) -> bool:
        """Return whether this filter sees packets of ``family`` before nfparity's program."""
        matches = self.protocol in (_PROTOCOLS[family], _ALL_PROTOCOLS)
        return matches and self.preference < PREFERENCES[family]


class Filters(Netlink):
    """Attaches to devices of the current network namespace. Methods raise MachineError."""

    def __init__(self) -> None:
        super().__init__(socket.NETLINK_ROUTE)

    def add_clsact(self, index: int) -> bool:
        """Add a ``clsact`` to the device; return whether it had none."""
        body = _message(index, handle=_CLSACT_HANDLE, parent=_CLSACT) + attribute(_TCA_KIND, b"clsact\0")
        number = self.request(_RTM_NEWQDISC, _CREATE | _EXCL, body)
        if number == errno.EEXIST:
            if index in self.with_clsact():
                return False
            raise MachineError(
                f"device {_name(index)} has an ingress qdisc, which has no egress side; replace it by clsact"
            )
        if number == errno.ENOENT:
            raise MachineError("this kernel has no clsact (CONFIG_NET_SCH_INGRESS, module sch_ingress)")
        _insist(number, index, "add a clsact")
        return True

    def with_clsact(self) -> frozenset[int]:
        """Return the devices that have a ``clsact``."""
        return frozenset(
            int(struct.unpack_from("=4xi", message)[0])
            for message in self.dump(_RTM_GETQDISC, _message(0))
            if attributes(message[20:]).get(_TCA_KIND, b"").rstrip(b"\0") == b"clsact"
        )

    def remove_clsact(self, index: int) -> bool:
        """Remove the device's ``clsact`` unless it has filters; return whether it is gone."""
        if any(True for side in Side for _ in self.on(index, side)):
            return False
        number = self.request(_RTM_DELQDISC, 0, _message(index, handle=_CLSACT_HANDLE, parent=_CLSACT))
        if number not in _GONE:
            _insist(number, index, "remove its clsact")
        return True

    def attach(
        self, index: int, side: Side, family: Family, program: int, *, replacing: bool = False
    ) -> None:
        """Attach a program, by its descriptor; with ``replacing``, it replaces nfparity's present one.

        Every packet then meets exactly one of the two (``cls_bpf_change`` swaps them in one list operation).
        """
        options = attribute(_BPF_FD, struct.pack("=I", program))
        options += attribute(_BPF_NAME, f"{_PREFIX}{side.word}".encode() + b"\0")
        options += attribute(_BPF_FLAGS, struct.pack("=I", _DIRECT_ACTION))
        options += attribute(_BPF_CLASSID, struct.pack("=I", 1))
        body = _filter(index, side, family) + nested(_TCA_OPTIONS, options)
        number = self.request(_RTM_NEWTFILTER, _CREATE | (_REPLACE if replacing else _EXCL), body)
        if number in (errno.EEXIST, errno.EINVAL) and not replacing:
            at = PREFERENCES[family]
            if any(f.preference == at for f in self.on(index, side)):
                raise MachineError(
                    f"cannot attach to {_name(index)}: another filter has preference {at} at its {side.word}"
                )
        _insist(number, index, f"attach to its {side.word}")

    def detach(self, index: int, side: Side, family: Family) -> bool:
        """Detach nfparity's program; return whether there was one."""
        if not any(f.ours and f.family is family for f in self.on(index, side)):
            return False
        number = self.request(_RTM_DELTFILTER, 0, _filter(index, side, family))
        if number not in _GONE:
            _insist(number, index, f"detach from its {side.word}")
        return not number

    def on(self, index: int, side: Side) -> Iterator[Filter]:
        """Yield the filters of one side of a device, in the order in which they run."""
        try:
            messages = self.dump(_RTM_GETTFILTER, _message(index, parent=side.value))
        except OSError as e:
            if e.errno in _GONE:
                return
            raise MachineError(f"cannot list the filters of {_name(index)}: {e.strerror}") from e
        for message in messages:
            listed = read_filter(message)
            if listed is not None and listed.index == index:
                yield listed


_GONE: Final = (0, errno.ENOENT, errno.ENODEV, errno.EINVAL)


def read_filter(message: bytes) -> Filter | None:
    """Return the filter in a message of a listing; None for a preference's head entry."""
    index, handle, parent, info = struct.unpack_from("=4xiIII", message)
    values = attributes(message[20:])
    kind = values.get(_TCA_KIND, b"").rstrip(b"\0").decode(errors="replace")
    if not handle or parent not in {side.value for side in Side}:
        return None
    options = attributes(values.get(_TCA_OPTIONS, b"")) if kind == "bpf" else {}
    return Filter(
        index=index,
        side=Side(parent),
        preference=info >> 16,
        protocol=socket.ntohs(info & 0xFFFF),
        handle=handle,
        kind=kind,
        name=options.get(_BPF_NAME, b"").rstrip(b"\0").decode(errors="replace"),
        tag=options.get(_BPF_TAG, b"").hex(),
        program=int.from_bytes(options.get(_BPF_ID, b"")[:4], "little"),
    )


def _message(index: int, *, handle: int = 0, parent: int = 0, info: int = 0) -> bytes:
    return struct.pack("=BxHiIII", socket.AF_UNSPEC, 0, index, handle, parent, info)


def _filter(index: int, side: Side, family: Family) -> bytes:
    info = PREFERENCES[family] << 16 | socket.htons(_PROTOCOLS[family])
    message = _message(index, handle=_HANDLE, parent=side.value, info=info)
    return message + attribute(_TCA_KIND, b"bpf\0")


def _insist(number: int, index: int, what: str) -> None:
    if number == errno.ENOENT:
        raise MachineError(f"cannot {what} ({_name(index)}): this kernel has no cls_bpf (CONFIG_NET_CLS_BPF)")
    if number:
        raise MachineError(f"device {_name(index)}: cannot {what}: {os.strerror(number)}")


def _name(index: int) -> str:
    try:
        return socket.if_indextoname(index)
    except OSError:
        return f"number {index}"
