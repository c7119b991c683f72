"""The devices between which the program may forward without the stack (``runtime/forward.h``).

The program cannot decide this for each packet, so it is decided here once: if the stack does more than look
up a route and a neighbour, packets continue to go through it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from backends.tc_ebpf.node.listings import Link
from backends.testbed.netlink import Netlink
from translate.ir import Family

__all__ = ["direct_devices"]

_ETHERNET: Final = 1  # ARPHRD_ETHER
_IFF_LOOPBACK: Final = 0x8
_NETLINK_XFRM: Final = 6
_XFRM_MSG_GETPOLICY: Final = 0x15
_SELECTOR: Final = bytes(64)  # struct xfrm_userpolicy_id: any
_IPV6: Final = Path("/proc/sys/net/ipv6/conf")


def direct_devices(links: list[Link], family: Family, bridges: frozenset[int]) -> frozenset[int]:
    """Return the devices of the current namespace between which packets may bypass the stack.

    The namespace must have no routing rules but the initial ones: before Linux 6.10 ``bpf_fib_lookup`` has no
    mark. There are none if there are IPsec policies, or if the node answers for its neighbours. Otherwise
    they are the devices with Ethernet frames that are not ports of another device, except ``bridges``, whose
    packets ``br_netfilter`` sees.
    """
    if _has_policies():
        return frozenset()
    if family is Family.IP6 and _ipv6("all", "proxy_ndp"):
        return frozenset()
    return frozenset(
        link.index
        for link in links
        if link.hardware == _ETHERNET
        and not link.flags & _IFF_LOOPBACK
        and not link.master
        and link.index not in bridges
        and (family is Family.IP or _forwards(link.name))
    )


def _forwards(device: str) -> bool:
    """Return whether ``ip6_forward`` would forward a packet that ``bpf_fib_lookup`` forwards.

    The lookup checks the sysctl ``forwarding`` of the device, ``ip6_forward`` only that of ``all``.
    """
    return _ipv6("all", "forwarding") or not _ipv6(device, "forwarding")


def _has_policies() -> bool:
    try:
        with Netlink(_NETLINK_XFRM) as xfrm:
            return bool(xfrm.dump(_XFRM_MSG_GETPOLICY, _SELECTOR))
    except OSError:
        return False  # a kernel without IPsec


def _ipv6(device: str, name: str) -> bool:
    try:
        return (_IPV6 / device / name).read_text().strip() != "0"
    except OSError:
        return False  # a kernel without IPv6, or a missing device
