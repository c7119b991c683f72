"""``-j TPROXY``: packets for a transparent proxy on the node."""

from __future__ import annotations

from typing import Final

from translate.ir import Hook, Protocol, Proxy, TableName
from translate.read.extensions.declaration import (
    Context,
    Options,
    OptionSpec,
    TargetExtension,
    parse_value_mask,
)
from translate.read.spelling.address import parse_resolved
from translate.read.spelling.errors import OptionError
from translate.read.spelling.ports import parse_resolved_range

__all__ = ["TPROXY"]


def _tproxy(options: Options, context: Context) -> Proxy:
    index, option = options.need("--on-port", "TPROXY")
    context.require("TPROXY", Protocol.TCP, Protocol.UDP)
    text = option.arguments[0]
    if ":" in text or not text:
        raise OptionError(f'"{text}" is not a port', option=index)
    port = parse_resolved_range(text, option=index).low
    value = mask = 0
    if (marked := options.find("--tproxy-mark")) is not None:
        value, mask = parse_value_mask(marked[1], index=marked[0])
    return Proxy(address=_address(options, context), port=port, value=value, mask=mask)


def _address(options: Options, context: Context) -> int | None:
    """Return the address; None (the input interface's) if it is missing or zero (``nf_tproxy_laddr4``)."""
    occurrence = options.find("--on-ip")
    if occurrence is None:
        return None
    index, option = occurrence
    return parse_resolved(context.family, option.arguments[0], option=index) or None


TPROXY: Final = TargetExtension(
    name="TPROXY",
    options=tuple(OptionSpec(name=name) for name in ("--on-port", "--on-ip", "--tproxy-mark")),
    meaning=_tproxy,
    tables=frozenset({TableName.MANGLE}),
    hooks=frozenset({Hook.PREROUTING}),
)
"""``-j TPROXY`` (``xt_TPROXY``)."""
