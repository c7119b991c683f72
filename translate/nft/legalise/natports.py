"""NAT targets that bind a port, in rules with and without a protocol that has ports.

nft accepts ports only after a match on protocols with ports. If a rule has no such test, its target moves to
a new chain: one rule binds the port for protocols that have ports or identifiers, and another binds the
address alone for all other protocols (``nf_nat_l4proto_unique_tuple``).
"""

from __future__ import annotations

from translate.dataclass import replace
from translate.ir import (
    PORT_PROTOCOLS,
    Accept,
    Action,
    Apply,
    Dnat,
    Family,
    FieldTest,
    Masquerade,
    Protocol,
    Redirect,
    Snat,
    Test,
)
from translate.nft.legalise.headers import CT_PORTS, PORTS, protocol_among, transports

__all__ = ["bindings", "needs_transport", "transport_again"]

_WithPorts = Dnat | Snat | Masquerade | Redirect


def needs_transport(action: Action) -> bool:
    """Return whether nft requires a transport protocol in the rule."""
    return isinstance(action, _WithPorts) and action.ports.interval is not None


def bindings(apply: Apply, family: Family) -> tuple[Apply, Apply]:
    """Return the two rules that bind a port: for protocols with ports, and for all others."""
    (action,) = apply.actions
    assert isinstance(action, _WithPorts)
    icmp = Protocol.ICMP if family is Family.IP else Protocol.ICMPV6
    rest: Action = replace(action, ports=replace(action.ports, interval=None))
    if isinstance(rest, Dnat | Snat) and rest.addresses is None:
        rest = Accept()
    return (
        replace(apply, tests=(protocol_among((icmp, *PORT_PROTOCOLS)),)),
        replace(apply, tests=(), actions=(rest,)),
    )


def transport_again(apply: Apply, part: FieldTest | None = None) -> tuple[Test, ...]:
    """Return the protocol test to repeat in another chain, or no test if no port or NAT action needs it."""
    protocols = transports(apply.tests)
    is_needed = any(map(needs_transport, apply.actions)) or (
        part is not None and part.field in (PORTS | CT_PORTS)
    )
    return (protocol_among(protocols),) if is_needed and protocols else ()
