"""The sysctls of the node under test, in this process's network namespace."""

from __future__ import annotations

from typing import Final

from backends.model.node import DEFAULT_SYSCTLS, Node
from translate.errors import MachineError
from translate.ir import Family

__all__ = ["set_accounting", "set_node_sysctls", "set_own_sysctls"]

_WHOLE_DAY: Final = "86400"
"""Seconds, longer than any replay."""
_OWN: Final = {
    # An echo request must count as delivered, without an answer.
    "net.ipv4.icmp_echo_ignore_all": "1",
    # Errors are limited per peer and per namespace; both limits turn rejects into drops. A rate limit of 0
    # would take the tokens with which ip_error answers that there is no route (inet_peer_xrlim_allow).
    "net.ipv4.icmp_ratemask": "0",
    "net.ipv4.icmp_msgs_per_sec": "1000000000",
    "net.ipv4.icmp_msgs_burst": "1000000000",
    # A node that gives up a packet of which it has some fragments reports this to the sender.
    "net.ipv4.ipfrag_time": _WHOLE_DAY,
    # The path MTU of an ICMP error expires at once: otherwise TCPMSS clamps later flows to it.
    "net.ipv4.route.mtu_expires": "0",
    # These are inherited from the machine otherwise (net.core.devconf_inherit_init_net).
    "net.ipv4.conf.{dev}.accept_local": "0",
    "net.ipv4.conf.{dev}.send_redirects": "0",
    "net.ipv4.conf.{dev}.log_martians": "0",
    "net.ipv4.conf.{dev}.src_valid_mark": "0",
    "net.ipv4.conf.{dev}.rp_filter": "0",
    "net.ipv4.conf.{dev}.route_localnet": "0",
}
_OF_FAMILY: Final = {
    Family.IP: {
        # No packets of neighbour discovery or MLD among those of a flow.
        "net.ipv6.conf.{dev}.disable_ipv6": "1",
    },
    Family.IP6: {
        "net.ipv6.conf.{dev}.disable_ipv6": "0",
        "net.ipv6.conf.{dev}.addr_gen_mode": "1",  # no link-local addresses
        "net.ipv6.conf.{dev}.accept_dad": "0",
        "net.ipv6.conf.{dev}.accept_ra": "0",
        "net.ipv6.conf.{dev}.accept_redirects": "0",
        "net.ipv6.conf.{dev}.router_solicitations": "0",
        # MLD repeats its report after a random part of a day; rules without a protocol would count it.
        "net.ipv6.conf.{dev}.mldv2_unsolicited_report_interval": "86400000",
        "net.ipv6.icmp.echo_ignore_all": "1",
        "net.ipv6.icmp.ratelimit": "0",
        "net.ipv6.route.mtu_expires": "0",
        "net.ipv6.ip6frag_time": _WHOLE_DAY,
        "net.netfilter.nf_conntrack_frag6_timeout": _WHOLE_DAY,
        "net.ipv6.flowlabel_reflect": "2",  # see backends.testbed.suppress_stack_rst
    },
}


def set_own_sysctls(family: Family) -> None:
    """Set the sysctls for a replay of ``family``, on all present and future devices."""
    # Switching ip_forward resets others (inet_forward_change), so the defaults come first.
    for name, value in DEFAULT_SYSCTLS.items():
        _set(name, value, missing_ok=True)
    for name, value in (_OWN | _OF_FAMILY[family]).items():
        for device in ("all", "default", "lo") if "{dev}" in name else ("",):
            _set(name.format(dev=device), value, missing_ok=True)


def set_node_sysctls(node: Node) -> None:
    """Set the node's sysctls. Raises MachineError if the kernel lacks or refuses one."""
    for name, value in DEFAULT_SYSCTLS.items():
        _set(name, value, missing_ok=True)
    dotted = [i.name for i in node.interfaces if "." in i.name]
    for name, value in node.sysctls.items():
        for device in dotted:
            # A Node has the plain name of a device; sysctl(8) writes "/" for its dots (eth0/100).
            if name.startswith((f"net.ipv4.conf.{device}.", f"net.ipv6.conf.{device}.")):
                name = name.replace(device, device.replace(".", "/"), 1)
        _set(name, value, missing_ok=name.startswith("net.netfilter."))


def set_accounting() -> None:
    """Let conntrack count packets and bytes (``connbytes_mt_check``).

    Raises MachineError without conntrack.
    """
    _set("net.netfilter.nf_conntrack_acct", "1", missing_ok=False)


def _set(name: str, value: str, *, missing_ok: bool) -> None:
    # As in sysctl(8): if the first separator is a dot, dots separate, and "/" means a dot.
    first = min((i for i in (name.find("."), name.find("/")) if i >= 0), default=0)
    path = name.translate(_SWAPPED) if name[first : first + 1] == "." else name
    parts = path.split("/")
    if parts[0] != "net" or not {"", ".", ".."}.isdisjoint(parts) or "\0" in path:
        raise MachineError(f"sysctl {name}: only net.* belongs to a network namespace")
    try:
        with open(f"/proc/sys/{path}", "wb", buffering=0) as file:
            file.write(value.encode())
    except FileNotFoundError as e:
        if not missing_ok:
            raise MachineError(f"this kernel has no sysctl {name}") from e
    except OSError as e:
        raise MachineError(f"cannot set sysctl {name} to {value!r}: {e.strerror}") from e


_SWAPPED: Final = str.maketrans("./", "/.")
