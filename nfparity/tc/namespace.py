"""Properties of the network namespace that a persistent dataplane needs, and changes to it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final

from backends.model.node import Node
from backends.tc_ebpf.node.facts import NodeFacts, read_facts
from backends.tc_ebpf.node.sourcechecks import read_checks, read_sysctl, taken_sysctls, write_sysctl
from backends.tc_ebpf.programs.bpfmap import BpfMap
from nfparity.tc.place import DataplanePlace
from nfparity.tc.record import Record
from translate.errors import MachineError
from translate.ir import Family

__all__ = ["current_facts", "refresh_maps", "take_sysctls"]

_NETFILTER: Final = Path("/proc/sys/net/netfilter")


def current_facts(family: Family, record: Record, *, reverse: bool) -> NodeFacts:
    """Return the facts for the program, with the ``rp_filter`` values from before it changed them.

    ``reverse``: also the routes by device, for a program that has their map.
    """
    checks = read_checks(_devices(), record.sysctls) if family is Family.IP else {}
    return read_facts(_node(), family, checks=checks, direct=record.source.direct, reverse=reverse)


def take_sysctls(place: DataplanePlace, record: Record) -> Record:
    """Record the old values of the sysctls that the program needs, set them, and return the record."""
    if place.family is not Family.IP:
        return record
    wanted = taken_sysctls(_devices())
    saved = dict(record.sysctls)
    for device, name in wanted:
        if (device, name) not in saved:
            try:
                saved[device, name] = read_sysctl(device, name)
            except MachineError:
                continue  # the device has just been removed
    if saved != record.sysctls:
        record = record.at(record.phase, sysctls=saved)
        record.write(place.record)
    for (device, name), value in wanted.items():
        if (device, name) in saved and read_sysctl(device, name) != value:
            write_sysctl(device, name, value)
    return record


def refresh_maps(facts: NodeFacts, map_of: Callable[[str], BpfMap]) -> None:
    """Write changed entries, then delete obsolete ones, while packets pass."""
    for name, entries in facts.entries.items():
        table = map_of(name)
        before, now = dict(table.entries()), dict(entries)
        table.update([(key, value) for key, value in now.items() if before.get(key) != value])
        table.delete([key for key in before if key not in now])
        table.close()


def _devices() -> list[str]:
    return [name for _, name in socket.if_nameindex()]


def _node() -> Node:
    """Return a node with the conntrack sysctls of this namespace."""
    try:
        files = sorted(_NETFILTER.glob("nf_conntrack_*"))
        return Node((), sysctls={f"net.netfilter.{file.name}": file.read_text().strip() for file in files})
    except OSError:
        return Node(())
