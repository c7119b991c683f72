"""``-m policy``: whether a packet came through IPsec or will leave through it, and with which states."""

from __future__ import annotations

from typing import Final

from translate.ir import IPSEC_DEPTH, AnyOf, Family, Field, FieldTest, Interval, Option, Test
from translate.read.extensions.declaration import (
    Context,
    MatchExtension,
    Options,
    OptionSpec,
    parse_number,
)
from translate.read.spelling.address import parse_resolved_mask
from translate.read.spelling.errors import OptionError
from translate.read.spelling.names import protocol_number

__all__ = ["POLICY"]

_FIELDS: Final = {
    "in": (Field.IPSEC_IN, Field.IPSEC_IN_STATES),
    "out": (Field.IPSEC_OUT, Field.IPSEC_OUT_STATES),
}
_POLICIES: Final = {"none": 0, "ipsec": 1}
_TUNNEL_ENDS: Final = ("--tunnel-src", "--tunnel-dst")
_COMPARABLE: Final = frozenset({"--reqid", "--spi"})
_ELEMENTS: Final = ("--reqid", "--spi", *_TUNNEL_ENDS, "--proto", "--mode")
_MOST: Final = 0xFFFFFFFF
_PROTOCOLS: Final = frozenset({50, 51, 108})  # ESP, AH and IPComp
_DEEPEST: Final = 4  # XT_POLICY_MAX_ELEM


def _policy(options: Options, context: Context) -> tuple[Test, ...]:
    index, direction = options.need("--dir", "policy")
    fields = _FIELDS.get(direction.arguments[0])
    if fields is None:
        raise OptionError(f'unknown direction "{direction.arguments[0]}"', option=index, hint="in or out")
    used, occurrence = 1, options.find("--pol")
    if occurrence is not None:
        policy = _POLICIES.get(occurrence[1].arguments[0])
        if policy is None:
            raise OptionError(
                f'unknown policy "{occurrence[1].arguments[0]}"', option=occurrence[0], hint="none or ipsec"
            )
        used = policy
    strict, next_element = options.find("--strict"), options.find("--next")
    if next_element is not None and strict is None:
        raise OptionError('"--next" needs "--strict"', option=next_element[0], argument=0)
    if strict is not None and not used:
        raise OptionError('"--strict" needs "--pol ipsec"', option=strict[0], argument=0)
    elements = _read_elements(options, context.family)
    if used:  # policy_check looks at no element of "none"
        _check_elements(elements, strict=strict is not None)
    asks = any(elements)
    whole = FieldTest(field=fields[0], values=(Interval.point(used),))
    if not used or not asks:
        return (whole,)  # without a policy, there is nothing to compare the elements with (policy_mt)
    states = _states(direction.arguments[0], elements, strict=strict is not None)
    return whole, *(states or (FieldTest(field=fields[1], values=(Interval.point(1),)),))


_Element = dict[str, tuple[int, Option]]


def _states(direction: str, elements: list[_Element], *, strict: bool) -> tuple[Test, ...]:
    """Return the tests of the states, or none if they are not tests of single fields.

    With ``--strict``, there is one state for each element. The first element is of the last state that the
    packet passed when it came in (``match_policy_in``), or of the first one that it will pass.
    """
    if any(element.keys() - _COMPARABLE for element in elements):
        return ()
    last = len(elements) - 1
    if strict:
        more = FieldTest(field=_field(direction, last + 1, "--reqid"), values=(Interval(0, _MOST),))
        places = (last - n if direction == "in" else n for n in range(len(elements)))
        pairs = zip(places, elements, strict=True)
        states = (_state(direction, n, option) for n, element in pairs for option in element.values())
        return (*states, AnyOf(tests=(more,), negated=True))
    if len(elements[0]) > 1:
        return ()  # both of one state, whichever it is
    ((_, option),) = elements[0].values()
    return (AnyOf(tests=tuple(_state(direction, n, (0, option)) for n in range(IPSEC_DEPTH))),)


def _state(direction: str, place: int, occurrence: tuple[int, Option]) -> FieldTest:
    """Return the test of one state.

    The kernel compares the bytes of ``--spi`` in the order of the machine with those of the SPI in network
    order (``match_xfrm_state``): ``--spi 0x100`` is SPI 0x10000 on a little-endian machine.
    """
    index, option = occurrence
    value = parse_number(option.arguments[0], _MOST, option=index)
    if option.name == "--spi":
        value = int.from_bytes(value.to_bytes(4, "little"), "big")
    field = _field(direction, place, option.name)
    return FieldTest(field=field, values=(Interval.point(value),), negated=option.negated)


def _field(direction: str, place: int, name: str) -> Field:
    return Field[f"IPSEC_{direction}_{place}_{name.removeprefix('--')}".upper()]


def _read_elements(options: Options, family: Family) -> list[_Element]:
    """Return the options of each policy, by their names. Raises OptionError for a value or a repetition."""
    elements: list[_Element] = [{}]
    for index, option in enumerate(options):
        if option.name == "--next":
            if len(elements) == _DEEPEST:
                raise OptionError(f"a rule has at most {_DEEPEST} policies", option=index, argument=0)
            elements.append({})
        elif option.name in _ELEMENTS:
            if option.name in elements[-1]:
                raise OptionError(f'"{option.name}" is given twice', option=index, argument=0)
            _check_value(option, family, index=index)
            elements[-1][option.name] = index, option
    return elements


def _check_elements(elements: list[_Element], *, strict: bool) -> None:
    """Raise OptionError for options of ``--pol ipsec`` that do not go together (``policy_check``)."""
    for element in elements:
        if strict and not element:
            raise OptionError('"--strict" needs options for each policy', hint="for example --reqid 1")
        end = next((element[name] for name in _TUNNEL_ENDS if name in element), None)
        mode = element.get("--mode")
        if end is not None and (mode is None or (mode[1].arguments[0] == "tunnel") is mode[1].negated):
            message = f'"{end[1].name}" needs "--mode tunnel"'
            raise OptionError(message, option=end[0], argument=0)


def _check_value(option: Option, family: Family, *, index: int) -> None:
    text = option.arguments[0]
    match option.name:
        case "--reqid" | "--spi":
            parse_number(text, _MOST, option=index)
        case "--proto":
            number = protocol_number(text)
            if number not in _PROTOCOLS:
                raise OptionError(f'"{text}" is no protocol of IPsec', option=index, hint="esp, ah or ipcomp")
        case "--mode":
            if text not in ("transport", "tunnel"):
                raise OptionError(f'unknown mode "{text}"', option=index, hint="transport or tunnel")
        case _:
            parse_resolved_mask(family, text, option=index)


POLICY: Final = MatchExtension(
    name="policy",
    options=(
        OptionSpec(name="--dir"),
        OptionSpec(name="--pol"),
        OptionSpec(name="--strict", arguments=0),
        *(OptionSpec(name=name, invertible=True, repeated=True) for name in _ELEMENTS),
        OptionSpec(name="--next", arguments=0, repeated=True),
    ),
    meaning=_policy,
)
"""``-m policy`` (``policy_mt``); without ``--pol``, it is true of any IPsec policy (``libxt_policy``)."""
