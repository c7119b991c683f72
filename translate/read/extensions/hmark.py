"""``-j HMARK``: marks from a hash of addresses, ports and protocol."""

from __future__ import annotations

from typing import Final

from translate.ir import HashMark
from translate.read.extensions.declaration import (
    Context,
    Options,
    OptionSpec,
    TargetExtension,
    first_named,
    parse_number,
)
from translate.read.spelling.address import parse_prefix_length
from translate.read.spelling.errors import OptionError

__all__ = ["HMARK"]

_WORD: Final = (1 << 32) - 1
_PORT: Final = (1 << 16) - 1
_MASKS: Final = {
    "src": "--hmark-src-prefix",
    "dst": "--hmark-dst-prefix",
    "sport": "--hmark-sport-mask",
    "dport": "--hmark-dport-mask",
    "proto": "--hmark-proto-mask",
    "spi": "--hmark-spi-mask",
}
"""The parts that ``--hmark-tuple`` names, and the option with the mask of each, in the order in which
abbreviations are looked up (``hmark_parse``)."""
_CONNECTION: Final = "ct"
_PARTS: Final = (_CONNECTION, *_MASKS)
_NUMBERS: Final = {
    **dict.fromkeys(("--hmark-sport-mask", "--hmark-dport-mask", "--hmark-proto-mask"), _PORT),
    **dict.fromkeys(("--hmark-sport", "--hmark-dport"), _PORT),
    **dict.fromkeys(
        ("--hmark-spi-mask", "--hmark-spi", "--hmark-rnd", "--hmark-mod", "--hmark-offset"), _WORD
    ),
}
_PREFIXES: Final = ("--hmark-src-prefix", "--hmark-dst-prefix")
_HASHED: Final = frozenset({*_MASKS.values(), "--hmark-sport", "--hmark-dport", "--hmark-spi"})


def _hmark(options: Options, context: Context) -> HashMark:
    values: dict[str, int] = {}
    by_connection = False
    for index, option in enumerate(options):
        text = option.arguments[0]
        if option.name == "--hmark-tuple":
            parts = _parts(text, index)
            by_connection = _CONNECTION in parts
            for part in parts - {_CONNECTION}:
                values[_MASKS[part]] = context.family.bits if part in ("src", "dst") else _all(part)
            continue
        if option.name in values:
            message = f'"{option.name}" is part of --hmark-tuple before it'
            raise OptionError(message, option=index, argument=0)
        if option.name in _PREFIXES:
            values[option.name] = parse_prefix_length(context.family, text, option=index)
        else:
            values[option.name] = parse_number(text, _NUMBERS[option.name], option=index)
    _check(options, values, by_connection=by_connection)
    return HashMark(
        source_mask=_mask(values.get("--hmark-src-prefix", 0), context),
        destination_mask=_mask(values.get("--hmark-dst-prefix", 0), context),
        port_mask=_ports(values, "-mask"),
        port_set=_ports(values, ""),
        protocol_mask=values.get("--hmark-proto-mask", 0),
        seed=values["--hmark-rnd"],
        modulus=values["--hmark-mod"],
        offset=values.get("--hmark-offset", 0),
        by_connection=by_connection,
    )


def _parts(text: str, index: int) -> set[str]:
    """Return the parts of ``--hmark-tuple``, which may be abbreviated."""
    parts = set()
    offset = 0
    for word in text.split(","):
        part = first_named(_PARTS, word) if word else None
        if part is None:
            hint = f"one of {', '.join(_PARTS)}"
            raise OptionError(f'"{word}" is no part of a tuple', option=index, offset=offset, hint=hint)
        parts.add(part)
        offset += len(word) + 1
    return parts


def _all(part: str) -> int:
    return _WORD if part == "spi" else _PORT


def _mask(length: int, context: Context) -> int:
    bits = context.family.bits
    return (1 << bits) - (1 << (bits - length))


def _ports(values: dict[str, int], suffix: str) -> int:
    """Return both ports or the SPI as one number."""
    ports = values.get(f"--hmark-sport{suffix}", 0) << 16 | values.get(f"--hmark-dport{suffix}", 0)
    return values.get(f"--hmark-spi{suffix}", ports)


def _check(options: Options, values: dict[str, int], *, by_connection: bool) -> None:
    """Raise OptionError for what iptables or ``hmark_tg_check`` refuses."""
    for name in ("--hmark-mod", "--hmark-rnd"):
        options.need(name, "HMARK")
    if not values["--hmark-mod"]:
        raise OptionError("the modulus is at least 1", option=options.need("--hmark-mod", "HMARK")[0])
    for suffix in ("-mask", ""):
        if f"--hmark-spi{suffix}" in values and not values.keys().isdisjoint(
            {f"--hmark-sport{suffix}", f"--hmark-dport{suffix}"}
        ):
            raise OptionError(f"--hmark-spi{suffix} does not go with those of ports")
    if not by_connection and values.keys().isdisjoint(_HASHED):
        raise OptionError('HMARK needs the option "--hmark-tuple", or one of a mask')


HMARK: Final = TargetExtension(
    name="HMARK",
    options=tuple(OptionSpec(name=name) for name in ("--hmark-tuple", *_PREFIXES, *_NUMBERS)),
    meaning=_hmark,
)
"""``-j HMARK`` (``xt_HMARK``)."""
