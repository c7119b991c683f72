"""``-j DNAT``, ``SNAT``, ``MASQUERADE``, ``REDIRECT``: the bindings of the nat table."""

from __future__ import annotations

from typing import Final

from translate.dataclass import replace
from translate.ir import (
    Dnat,
    Family,
    Hook,
    Interval,
    Masquerade,
    NatPorts,
    Netmap,
    Protocol,
    Redirect,
    Snat,
    TableName,
)
from translate.read.extensions.declaration import Context, Options, OptionSpec, TargetExtension
from translate.read.spelling.address import parse_canonical, parse_resolved_mask
from translate.read.spelling.errors import OptionError
from translate.read.spelling.ports import NatPortRange, parse_nat_ports

__all__ = ["DNAT", "MASQUERADE", "NETMAP", "REDIRECT", "SNAT"]

_NAT: Final = frozenset({TableName.NAT})
_WITH_PORTS: Final = frozenset({Protocol.TCP, Protocol.UDP, Protocol.SCTP, Protocol.DCCP, Protocol.ICMP})
"""Protocols of ``-p``, negated or not, with which a target may have ports (``__NAT_parse``)."""
_DESTINATION_HOOKS: Final = frozenset({Hook.PREROUTING, Hook.OUTPUT})


def _ports(text: str, context: Context, *, option: int, offset: int) -> NatPortRange:
    if context.protocol_before not in _WITH_PORTS:
        raise OptionError(
            "a port needs a protocol that has ports",
            option=option,
            offset=offset,
            hint="put -p tcp, udp, sctp, dccp or icmp before the target",
        )
    return parse_nat_ports(text, option=option, offset=offset)


def _split(text: str, family: Family, *, option: int) -> tuple[str, int, str | None, int]:
    """Return the address part, its offset, the port part or None, and its offset (``parse_to``)."""
    if not text.startswith("[") or family is Family.IP:
        address, colon, ports = text.partition(":")
        if family is Family.IP6 and ":" in ports:
            return text, 0, None, 0
        return address, 0, ports if colon else None, len(address) + 1
    address, bracket, rest = text[1:].partition("]")
    if not bracket or (rest and not rest.startswith(":")):
        raise OptionError(f'"{text}" is not [address]:port', option=option)
    return address, 1, rest[1:] if rest else None, len(address) + 3


def _range(text: str, family: Family, *, option: int, offset: int) -> Interval:
    low_text, dash, high_text = text.partition("-")
    low = parse_canonical(family, low_text, option=option, offset=offset)
    after = offset + len(low_text) + 1
    high = parse_canonical(family, high_text, option=option, offset=after) if dash else low
    if low > high:
        hint = "the kernel would choose any address"
        raise OptionError(
            f'address range "{text}" ends before it begins', option=option, offset=offset, hint=hint
        )
    return Interval(low, high)


def _binding(options: Options, context: Context, *, to: str, target: str) -> tuple[Interval | None, NatPorts]:
    index, option = options.need(to, target)
    text = option.arguments[0]
    address, at, port_text, port_at = _split(text, context.family, option=index)
    addresses = _range(address, context.family, option=index, offset=at) if address else None
    ports = None
    if port_text is not None:
        ports = _ports(port_text, context, option=index, offset=port_at)
    elif addresses is None:
        raise OptionError(f'"{text}" names neither an address nor a port', option=index)
    return addresses, _nat_ports(options, ports)


def _nat_ports(options: Options, ports: NatPortRange | None) -> NatPorts:
    flags = {option.name for option in options}
    return NatPorts(
        interval=None if ports is None else ports.ports,
        base=None if ports is None or ports.ports.is_point else ports.base,
        random="--random" in flags,
        fully_random="--random-fully" in flags,
        persistent="--persistent" in flags,
    )


def _dnat(options: Options, context: Context) -> Dnat:
    return Dnat(*_binding(options, context, to="--to-destination", target="DNAT"))


def _snat(options: Options, context: Context) -> Snat:
    addresses, ports = _binding(options, context, to="--to-source", target="SNAT")
    if ports.base is not None:
        ports = replace(ports, base=0)  # xt_nat_convert_range has no base
    return Snat(addresses, ports)


def _to_ports(options: Options, context: Context) -> NatPorts:
    occurrence = options.find("--to-ports")
    ports = None
    if occurrence is not None:
        index, option = occurrence
        ports = _ports(option.arguments[0], context, option=index, offset=0)
        if ports.base is not None:
            hint = "only DNAT passes the port after the slash to the kernel"
            raise OptionError(f'"{option.arguments[0]}" shifts ports', option=index, hint=hint)
    return _nat_ports(options, ports)


def _masquerade(options: Options, context: Context) -> Masquerade:
    return Masquerade(_to_ports(options, context))


def _redirect(options: Options, context: Context) -> Redirect:
    return Redirect(_to_ports(options, context))


def _netmap(options: Options, context: Context) -> Netmap:
    index, option = options.need("--to", "NETMAP")
    to = parse_resolved_mask(context.family, option.arguments[0], option=index)
    return Netmap(network=to.address & to.mask, mask=to.mask)


_RANDOM: Final = OptionSpec(name="--random", arguments=0)
_RANDOM_FULLY: Final = OptionSpec(name="--random-fully", arguments=0)
_PERSISTENT: Final = OptionSpec(name="--persistent", arguments=0)
_TO_PORTS: Final = OptionSpec(name="--to-ports")

DNAT: Final = TargetExtension(
    name="DNAT",
    options=(OptionSpec(name="--to-destination"), _RANDOM, _PERSISTENT),
    meaning=_dnat,
    tables=_NAT,
    hooks=_DESTINATION_HOOKS,
)
"""``-j DNAT`` (``xt_nat``)."""

SNAT: Final = TargetExtension(
    name="SNAT",
    options=(OptionSpec(name="--to-source"), _RANDOM, _RANDOM_FULLY, _PERSISTENT),
    meaning=_snat,
    tables=_NAT,
    hooks=frozenset({Hook.POSTROUTING, Hook.INPUT}),
)
"""``-j SNAT`` (``xt_nat``)."""

NETMAP: Final = TargetExtension(
    name="NETMAP",
    options=(OptionSpec(name="--to"),),
    meaning=_netmap,
    tables=_NAT,
    hooks=_DESTINATION_HOOKS | {Hook.POSTROUTING, Hook.INPUT},
)
"""``-j NETMAP`` (``xt_NETMAP``): networks of the same size, address by address."""

MASQUERADE: Final = TargetExtension(
    name="MASQUERADE",
    options=(_TO_PORTS, _RANDOM, _RANDOM_FULLY),
    meaning=_masquerade,
    tables=_NAT,
    hooks=frozenset({Hook.POSTROUTING}),
)
"""``-j MASQUERADE`` (``xt_MASQUERADE``)."""

REDIRECT: Final = TargetExtension(
    name="REDIRECT",
    options=(_TO_PORTS, _RANDOM),
    meaning=_redirect,
    tables=_NAT,
    hooks=_DESTINATION_HOOKS,
)
"""``-j REDIRECT`` (``xt_REDIRECT``)."""
