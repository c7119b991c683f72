"""Packets through the virtual services of ip_vs and the iptables rules of a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Final

from backends.iptables.backend import IptablesBackend, IptablesLoader, loader_of
from backends.ipvs.loader import DEVICE, IpvsLoader
from backends.model.contract import Availability, Job
from backends.model.ipvs import IpvsTable, write_table
from backends.model.node import Address, Interface, Node
from backends.replay.availability import kernel_lacks
from backends.replay.loader import Loader
from backends.replay.session import KernelSession, open_session
from backends.testbed.command import find_tool
from translate.dataclass import dataclass, replace
from translate.ir import Family

__all__ = ["IpvsBackend", "own_addresses", "with_device", "without_device"]

_LEGACY: Final = "iptables-legacy"
_NO_RULES: Final = "*filter\nCOMMIT\n"


@dataclass(frozen=True, slots=True)
class IpvsBackend:
    """A node in ipvs mode: the job's iptables rules and ipsets, ``table``, and kube-ipvs0.

    ``beside`` adds other rules to the loader of the job's rules, such as nftables tables.
    """

    table: IpvsTable
    beside: Callable[[Loader], Loader] = lambda loader: loader

    @property
    def name(self) -> str:
        """The name in progress reports."""
        return "ipvs"

    def probe(self) -> Availability:
        """Return whether ipvsadm is installed and this kernel has ip_vs, dummy devices and x_tables."""
        if find_tool("ipvsadm") is None:
            return Availability(False, "ipvsadm is not installed (Debian package ipvsadm)")
        iptables = IptablesBackend(_LEGACY).probe()
        if not iptables.ok:
            return iptables
        return kernel_lacks(IpvsLoader("", (), IptablesLoader(_LEGACY, _NO_RULES)))

    def open(self, job: Job) -> AbstractContextManager[KernelSession]:
        """Load everything into a fresh node. The job's rules are all of the node's, with kube-proxy's."""
        family = job.ruleset.family
        table = self.table.of(family)
        loader = IpvsLoader(
            write_table(table),
            addresses_of(job.node, table, family),
            self.beside(loader_of(_LEGACY, job.ruleset)),
            persistent=any(service.persistent for service in table.services),
        )
        return open_session(without_device(job.node), loader)


def addresses_of(node: Node, table: IpvsTable, family: Family) -> Sequence[int]:
    """Return the addresses of kube-ipvs0.

    If the node does not list the device, they are the addresses of services that no other device has.
    """
    device = node.interface(DEVICE)
    if device is not None:
        return tuple(a.value for a in device.addresses if a.family is family)
    own = own_addresses(node, family)
    services = table.of(family).services
    return tuple(dict.fromkeys(s.address for s in services if s.address not in own))


def own_addresses(node: Node, family: Family) -> frozenset[int]:
    """Return the node's addresses that are not those of services."""
    addresses = (a for i in node.interfaces if i.name != DEVICE for a in i.addresses)
    return frozenset(address.value for address in addresses if address.family is family)


def with_device(node: Node, table: IpvsTable) -> Node:
    """Return the node with kube-ipvs0; if not listed, it is assumed to have the addresses of services."""
    if node.interface(DEVICE) is not None:
        return node
    addresses = tuple(
        Address(family, value, family.bits)
        for family in Family
        for value in addresses_of(node, table, family)
    )
    why = f"interface {DEVICE} with the {len(addresses)} addresses of virtual services"
    return replace(
        node, interfaces=(*node.interfaces, Interface(DEVICE, addresses)), assumed=(*node.assumed, why)
    )


def without_device(node: Node) -> Node:
    """Return the node without kube-ipvs0, which kube-proxy deletes when it leaves the ipvs mode."""
    rest = tuple(interface for interface in node.interfaces if interface.name != DEVICE)
    return replace(node, interfaces=rest)
