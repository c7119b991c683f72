"""``-j NFQUEUE`` and ``-j QUEUE``: packets for a program of the node that decides about them."""

from __future__ import annotations

from typing import Final

from translate.ir import Queue
from translate.read.extensions.declaration import (
    Context,
    Options,
    OptionSpec,
    TargetExtension,
    parse_number,
    parse_range,
)
from translate.read.spelling.errors import OptionError

__all__ = ["NFQUEUE", "QUEUE"]

_LAST: Final = 65535


def _queues(options: Options) -> tuple[int, int]:
    """Return the first and the last queue."""
    single, balanced = options.find("--queue-num"), options.find("--queue-balance")
    if balanced is None:
        number = 0 if single is None else parse_number(single[1].arguments[0], _LAST, option=single[0])
        return number, number
    index, option = balanced
    if single is not None:
        raise OptionError("NFQUEUE takes --queue-num or --queue-balance, not both", option=index)
    text = option.arguments[0]
    if text.endswith(":"):
        # A missing end is 65535 for iptables 1.8.9, and 65534 for 1.8.11.
        raise OptionError(f'the end of "{text}" depends on the version of iptables', option=index)
    first, last = parse_range(text, _LAST, option=index)
    # iptables 1.8.9 saves a missing end as 65535, which it does not read. The kernel counts with 16 bits.
    if ":" not in text or first >= last or last - first == _LAST:
        raise OptionError(f'"{text}" is not a range of at most 65535 queues', option=index)
    return first, last


def _nfqueue(options: Options, _context: Context) -> Queue:
    first, last = _queues(options)
    fanout = options.find("--queue-cpu-fanout")
    if fanout is not None and options.find("--queue-balance") is None:
        raise OptionError("--queue-cpu-fanout needs --queue-balance", option=fanout[0])
    bypass = options.find("--queue-bypass") is not None
    return Queue(first=first, last=last, bypass=bypass, by_processor=fanout is not None)


NFQUEUE: Final = TargetExtension(
    name="NFQUEUE",
    options=(
        OptionSpec(name="--queue-num"),
        OptionSpec(name="--queue-balance"),
        OptionSpec(name="--queue-bypass", arguments=0),
        OptionSpec(name="--queue-cpu-fanout", arguments=0),
    ),
    meaning=_nfqueue,
)
"""``-j NFQUEUE`` (``xt_NFQUEUE``)."""

QUEUE: Final = TargetExtension(
    name="QUEUE", options=(), meaning=lambda _options, _context: Queue(first=0, last=0)
)
"""``-j QUEUE``, the verdict ``NF_QUEUE`` without a number."""
