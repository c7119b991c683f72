"""``-j REJECT``, and the three verdicts of x_tables itself."""

from __future__ import annotations

from typing import Final

from translate.ir import (
    Accept,
    Action,
    Drop,
    Family,
    Hook,
    Protocol,
    Reject,
    RejectKind,
    Return,
    TableName,
)
from translate.read.extensions.declaration import Context, Options, OptionSpec, TargetExtension
from translate.read.spelling.errors import OptionError

__all__ = ["ACCEPT", "DROP", "REJECT", "RETURN"]

_REJECT_KINDS: Final = {
    Family.IP: {
        "net-unreach": RejectKind.ICMP_NET_UNREACHABLE,
        "host-unreach": RejectKind.ICMP_HOST_UNREACHABLE,
        "proto-unreach": RejectKind.ICMP_PROTO_UNREACHABLE,
        "port-unreach": RejectKind.ICMP_PORT_UNREACHABLE,
        "net-prohib": RejectKind.ICMP_NET_PROHIBITED,
        "host-prohib": RejectKind.ICMP_HOST_PROHIBITED,
        "tcp-rst": RejectKind.TCP_RESET,
        "admin-prohib": RejectKind.ICMP_ADMIN_PROHIBITED,
    },
    Family.IP6: {
        "no-route": RejectKind.ICMP6_NO_ROUTE,
        "adm-prohibited": RejectKind.ICMP6_ADM_PROHIBITED,
        "addr-unreach": RejectKind.ICMP6_ADDR_UNREACHABLE,
        "port-unreach": RejectKind.ICMP6_PORT_UNREACHABLE,
        "tcp-reset": RejectKind.TCP_RESET,
        "policy-fail": RejectKind.ICMP6_POLICY_FAIL,
        "reject-route": RejectKind.ICMP6_REJECT_ROUTE,
    },
}
"""The aliases of each family, in the kernel's order; a word means the first alias that begins with it."""
_DEFAULT_KIND: Final = {
    Family.IP: RejectKind.ICMP_PORT_UNREACHABLE,
    Family.IP6: RejectKind.ICMP6_PORT_UNREACHABLE,
}


def _reject(options: Options, context: Context) -> Reject:
    occurrence = options.find("--reject-with")
    if occurrence is None:
        return Reject(_DEFAULT_KIND[context.family])
    index, option = occurrence
    text = option.arguments[0].lower()
    aliases = _REJECT_KINDS[context.family]
    kinds = ((kind, (kind.value, alias)) for alias, kind in aliases.items())
    kind = next((kind for kind, names in kinds if any(name.startswith(text) for name in names)), None)
    if kind is None:
        raise OptionError(
            f'unknown reject type "{option.arguments[0]}"',
            option=index,
            hint="known are " + ", ".join(kind.value for kind in aliases.values()),
        )
    if kind is RejectKind.TCP_RESET and context.protocol != Protocol.TCP:
        raise OptionError('tcp-reset needs "-p tcp" in the same rule', option=index)
    return Reject(kind)


def _drop(_options: Options, context: Context) -> Action:
    if context.table is TableName.NAT:
        raise OptionError("the nat table is not for filtering; iptables refuses DROP there")
    return Drop()


ACCEPT: Final = TargetExtension(name="ACCEPT", options=(), meaning=lambda _options, _context: Accept())
DROP: Final = TargetExtension(name="DROP", options=(), meaning=_drop)
RETURN: Final = TargetExtension(name="RETURN", options=(), meaning=lambda _options, _context: Return())

REJECT: Final = TargetExtension(
    name="REJECT",
    options=(OptionSpec(name="--reject-with"),),
    meaning=_reject,
    tables=frozenset({TableName.FILTER}),
    hooks=frozenset({Hook.INPUT, Hook.FORWARD, Hook.OUTPUT}),
)
"""``-j REJECT`` (``ipt_REJECT``, ``ip6t_REJECT``)."""
