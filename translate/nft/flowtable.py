"""A flowtable in the table of a translation, for established connections.

A base chain after all others of FORWARD gives the flowtable each TCP and UDP connection whose packet is
ESTABLISHED and passes between its devices. A packet reaches this chain only if all other chains of FORWARD
accept it. :mod:`translate.nft.limits.offload` proves that the rules would treat later packets alike.

The flowtable also counts packets for conntrack (``counter``), because rules and other programs read these
counts.
"""

from __future__ import annotations

import re
from typing import Final

from translate.dataclass import dataclass, replace
from translate.errors import InputError, UnsupportedError
from translate.ir import (
    NOWHERE,
    TABLE_HOOKS,
    ConnectionState,
    Family,
    Field,
    FieldTest,
    Hook,
    Interval,
    Name,
    Policy,
    Program,
    Protocol,
)
from translate.nft.legal import BaseHook
from translate.nft.limits.offload import refused_offloads
from translate.nft.model import NftChain, NftFlowtable, NftRule, NftTable
from translate.nft.printer.matches import field_match

__all__ = ["Offload", "with_flowtable"]

_NAME: Final = "established_flows"
_DEVICE: Final = re.compile(r"[A-Za-z][A-Za-z0-9._@-]{0,14}")
"""A name that the scanner of nft takes for a string, of at most 15 characters (``IFNAMSIZ``)."""
_PRIORITY: Final = max(hooks[Hook.FORWARD] for hooks in TABLE_HOOKS.values() if Hook.FORWARD in hooks) + 1


@dataclass(frozen=True, slots=True)
class Offload:
    """The devices of a flowtable.

    ``unchecked`` accepts that it forwards packets which conntrack would find INVALID, and segments with SYN.
    """

    devices: tuple[str, ...]
    unchecked: bool = False

    def __post_init__(self) -> None:
        """Raise InputError for a name that no device has, or that nft cannot spell."""
        if not self.devices:
            raise InputError("a flowtable needs at least one device")
        for device in self.devices:
            if not _DEVICE.fullmatch(device):
                raise InputError(f"{device!r} is not a device that a flowtable can have")
            if self.devices.count(device) > 1:
                raise InputError(f"device {device} is named twice")


def with_flowtable(table: NftTable, program: Program, offload: Offload) -> NftTable:
    """Return the table of ``program`` with a flowtable. Raises UnsupportedError unless the proof succeeds."""
    refusals = refused_offloads(program, frozenset(offload.devices), unchecked=offload.unchecked)
    if refusals:
        raise UnsupportedError(refusals)
    flowtable = NftFlowtable(name=_NAME, devices=offload.devices)
    # All other chains have the name of an iptables table before an underscore.
    chain = NftChain(
        name="offload_FORWARD",
        note="established connections that the flowtable forwards",
        origin=NOWHERE,
        base=BaseHook(type="filter", hook=Hook.FORWARD, priority=_PRIORITY, policy=Policy.ACCEPT),
        rules=(NftRule(parts=(*_tests(program.family, offload), f"flow add @{_NAME}"), origin=NOWHERE),),
    )
    return replace(table, flowtables=(flowtable,), chains=[*table.chains, chain])


def _tests(family: Family, offload: Offload) -> tuple[str, ...]:
    """Return the matches of the connections that the flowtable gets.

    Both devices are tested: the kernel would also take a connection of which it sees only one direction.
    """
    devices = tuple(map(Name, offload.devices))
    protocols = (Interval.point(int(Protocol.TCP)), Interval.point(int(Protocol.UDP)))
    state = (Interval.point(int(ConnectionState.ESTABLISHED)),)
    tests = (
        FieldTest(field=Field.IIF, values=devices),
        FieldTest(field=Field.OIF, values=devices),
        FieldTest(field=Field.L4PROTO, values=protocols),
        FieldTest(field=Field.CT_STATE, values=state),
    )
    return tuple(field_match(test, family) for test in tests)
