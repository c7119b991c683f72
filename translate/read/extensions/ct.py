"""``-j CT`` and ``-j NOTRACK``: a packet's zone, and the settings of its new connection."""

from __future__ import annotations

from typing import Final

from translate.ir import Action, Hook, NoTrack, TableName, Template, ZoneSide
from translate.read.extensions.declaration import Context, Options, OptionSpec, TargetExtension
from translate.read.spelling.errors import OptionError
from translate.read.spelling.numbers import unsigned

__all__ = ["CT", "NOTRACK"]

_RAW: Final = frozenset({TableName.RAW})
_RAW_HOOKS: Final = frozenset({Hook.PREROUTING, Hook.OUTPUT})
_ZONES: Final = {
    "--zone": ZoneSide.BOTH,
    "--zone-orig": ZoneSide.ORIGINAL,
    "--zone-reply": ZoneSide.REPLY,
}
_MOST: Final = 0xFFFF
_EVENTS: Final = (
    *("new", "related", "destroy", "reply", "assured", "protoinfo"),
    *("helper", "mark", "natseqinfo", "secmark"),
)
_EXPECTATION_EVENTS: Final = ("new",)


def _ct(options: Options, context: Context) -> Action:
    zone, side = _zone(options)
    helper, timeout = (_text(options, name) for name in ("--helper", "--timeout"))
    events = _listed(options, "--ctevents", _EVENTS)
    expectation_events = _listed(options, "--expevents", _EXPECTATION_EVENTS)
    if options.has("--notrack"):
        return NoTrack()  # the kernel ignores all other options
    for name in ("--helper", "--timeout"):
        if (occurrence := options.find(name)) is not None and not context.protocol:
            raise OptionError(f'"{name}" needs "-p" in the same rule, not negated', option=occurrence[0])
    return Template(
        zone=zone,
        side=side,
        helper=helper,
        protocol=context.protocol if helper else None,
        timeout=timeout,
        events=events,
        expectation_events=expectation_events,
    )


def _zone(options: Options) -> tuple[int | None, ZoneSide]:
    """Return the zone's number and side, which several options may set (``ct_parse_zone_id``).

    The last number counts, but ``mark`` overrides all numbers. Both sides together are the whole connection.
    """
    number, by_mark, sides = 0, False, set()
    for index, option in enumerate(options):
        if option.name not in _ZONES:
            continue
        sides.add(_ZONES[option.name])
        text = option.arguments[0]
        if text.lower() == "mark":
            by_mark, number = True, 0
            continue
        value = unsigned(text, _MOST)
        if value is None:
            raise OptionError(f'"{text}" is not a zone', option=index, hint=f"0 to {_MOST}, or mark")
        number = value
    one_sided = sides - {ZoneSide.BOTH}
    side = one_sided.pop() if len(one_sided) == 1 else ZoneSide.BOTH
    return None if by_mark else number, side


def _text(options: Options, name: str) -> str:
    occurrence = options.find(name)
    return "" if occurrence is None else occurrence[1].arguments[0]


def _listed(options: Options, name: str, events: tuple[str, ...]) -> tuple[str, ...] | None:
    occurrence = options.find(name)
    if occurrence is None:
        return None
    index, option = occurrence
    names = option.arguments[0].split(",")
    for event in names:
        if event not in events:
            raise OptionError(f'unknown event "{event}"', option=index, hint=", ".join(events))
    return tuple(event for event in events if event in names)


NOTRACK: Final = TargetExtension(
    name="NOTRACK",
    options=(),
    meaning=lambda _options, _context: NoTrack(),
    tables=_RAW,
    hooks=_RAW_HOOKS,
)
"""``-j NOTRACK``, the older spelling of ``-j CT --notrack`` (``xt_CT``)."""

CT: Final = TargetExtension(
    name="CT",
    options=(
        OptionSpec(name="--notrack", arguments=0),
        *(OptionSpec(name=name) for name in ("--helper", "--timeout", "--ctevents", "--expevents", *_ZONES)),
    ),
    meaning=_ct,
    tables=_RAW,
    hooks=_RAW_HOOKS,
)
"""``-j CT`` (``xt_CT``)."""
