"""Legal Program → the structure of one nftables table, with every match, key and statement as text."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Final, assert_never

from translate.ir import (
    RANDOM_RANGE,
    Accept,
    Dnat,
    Drop,
    Family,
    Field,
    FieldTest,
    Goto,
    Interval,
    Jump,
    Nth,
    Random,
    Return,
    Value,
    format_address,
)
from translate.nft.elements import ListedElements, NftElement
from translate.nft.legal import (
    AddLabel,
    AnyProtocol,
    Count,
    CountedInSet,
    DnatTarget,
    DnatTo,
    Draw,
    Element,
    FilledSet,
    ForThisMachine,
    HashedTo,
    HasLabel,
    HasTransport,
    InSet,
    LegalChain,
    LegalList,
    LegalMap,
    LegalProgram,
    LegalRule,
    Masked,
    OfCgroup,
    Part,
    PortOf,
    SetChange,
    SetHelper,
    SetLabel,
    TakenInSet,
    TransportByte,
    VerdictOf,
    WithinLimit,
    WithinQuota,
    WordMatch,
)
from translate.nft.model import NftChain, NftList, NftMap, NftRing, NftRule, NftSet, NftTable
from translate.nft.printer.fields import keys
from translate.nft.printer.matches import (
    ANY_PROTOCOL,
    HAS_TRANSPORT,
    field_match,
    key_text,
    port_match,
    transport_byte_match,
    word_match,
)
from translate.nft.printer.statements import nat_flags, statement, verdict

__all__ = ["TABLE", "printed"]

TABLE: Final = "nfparity"
"""The name of nfparity's table in each family; no other table is changed."""


def printed(program: LegalProgram) -> NftTable:
    """Return the table of a legal Program."""
    return NftTable(
        family=program.family.value,
        name=TABLE,
        sets=[
            NftSet(
                name=each.name,
                key=key_text(each.key, program.family),
                size=each.size,
                timeout=each.timeout,
                note=each.note,
                ends=each.ends,
                elements=ListedElements(tuple(_elements(each, program))),
            )
            for each in program.sets
        ],
        objects=program.objects,
        maps=[_map(each, program) for each in program.maps],
        chains=[_chain(each, program) for each in program.chains],
        lists=[_list(each, program.family) for each in program.lists],
    )


def _list(each: LegalList, family: Family) -> NftList:
    rings = tuple(
        NftRing(tuple(s.name for s in ring.times), tuple(s.name for s in ring.turns), ring.times[0].timeout)
        for ring in each.rings
    )
    all_sets = (*each.sets, *(filled for ring in each.rings for filled in ring.times))
    return NftList(
        name=each.name,
        key=tuple(keys(field, value, family)[0] for field, value in each.key),
        sets=tuple((filled.name, filled.timeout) for filled in each.sets),
        rings=rings,
        size=min((filled.size for filled in all_sets), default=0),
    )


def _chain(chain: LegalChain, program: LegalProgram) -> NftChain:
    rules = tuple([_rule(rule, program) for rule in chain.rules])
    return NftChain(name=chain.name, note=chain.note, origin=chain.origin, base=chain.base, rules=rules)


def _rule(rule: LegalRule, program: LegalProgram) -> NftRule:
    parts = tuple([_part(part, program) for part in rule.parts])
    return NftRule(parts=parts, targets=rule.calls, origin=rule.origin)


def _part(part: Part, program: LegalProgram) -> str:
    family = program.family
    match part:
        case FieldTest():
            return field_match(part, family)
        case PortOf(protocol=protocol, test=test):
            return port_match(protocol, test, family)
        case Accept() | Drop() | Return() | Jump() | Goto():
            return verdict(part, program.called)
        case WordMatch():
            return word_match(part)
        case OfCgroup(path=path):
            return f'socket cgroupv2 level {path.count("/") + 1} "{path}"'
        case TransportByte(test=test):
            return transport_byte_match(test, family)
        case HasTransport():
            return HAS_TRANSPORT
        case AnyProtocol():
            return ANY_PROTOCOL
        case Random(numerator=numerator, negated=negated):
            return f"numgen random mod {RANDOM_RANGE} {'>=' if negated else '<'} {numerator}"
        case Nth(every=every, packet=packet, negated=negated):
            return f"numgen inc mod {every} {'!=' if negated else '=='} {packet}"
        case InSet(set=name, key=key, negated=negated):
            return f"{key_text(key, family)} {'!= ' if negated else ''}@{name}"
        case SetChange(set=name, key=key, delete=delete, add=add, timeout=timeout):
            change = "delete" if delete else "add" if add else "update"
            until = "" if timeout is None else f" timeout {timeout}s"
            return f"{change} @{name} {{ {key_text(key, family)}{until} }}"
        case HasLabel(number=number):
            return f"ct label {number}"
        case AddLabel(number=number):
            return f"ct label set {number}"
        case HashedTo(total=total, seed=seed, values=values):
            source = key_text((Field.CT_ORIGINAL_SADDR,), family)
            wanted = ", ".join(map(str, values))
            return f"jhash {source} mod {total} seed {seed:#x} {{ {wanted} }}"
        case ForThisMachine():
            return "meta pkttype set unicast"
        case Count(counter=name):
            return f"counter name {name}"
        case TakenInSet(set=name, key=key, rate=rate, unit=unit, burst=burst, above=above):
            limit = f"limit rate {'over ' if above else ''}{rate}/{unit} burst {burst} packets"
            return f"update @{name} {{ {key_text(key, family)} {limit} }}"
        case CountedInSet(set=name, key=key, limit=limit, above=above):
            return f"add @{name} {{ {key_text(key, family)} ct count {'over ' if above else ''}{limit} }}"
        case WithinLimit(limit=name):
            return f'limit name "{name}"'
        case WithinQuota(quota=name):
            return f'quota name "{name}"'
        case SetHelper(helper=helper):
            return f'ct helper set "{helper.name}"'
        case SetLabel(label=label):
            return f'meta secmark set "{label.name}"'
        case VerdictOf(map=name, key=key):
            return f"{key_text(key, family)} vmap @{name}"
        case DnatTo(map=name, key=key, ports=ports):
            return f"dnat {family.value} to {key_text(key, family)} map @{name}{nat_flags(ports)}"
        case _:
            return statement(part, family, program.called)


def _map(each: LegalMap, program: LegalProgram) -> NftMap:
    family = program.family
    return NftMap(
        name=each.name,
        key=key_text(each.key, family),
        data=_data_type(each.data, family),
        interval=each.interval,
        elements=ListedElements(tuple(_elements(each, program))),
        note=each.note,
    )


def _elements(each: LegalMap | FilledSet, program: LegalProgram) -> Iterator[NftElement]:
    for element in each.elements:
        data = _data(element, program)
        for key in _keys(each, element, program.family):
            yield NftElement(key=key, data=data, origin=element.entry.origin)


def _data_type(data: str | DnatTarget | None, family: Family) -> str | None:
    """Return the expression that gives the type of the map's data."""
    match data:
        case DnatTarget(ported=ported):
            return f"{family.value} daddr" + (" . th dport" if ported else "")
        case _:
            return data


def _keys(each: LegalMap | FilledSet, element: Element, family: Family) -> list[str]:
    """Return the element's keys: several if it has symbols of an unordered type."""
    parts = [
        _key_values(part, value, family) for part, value in zip(each.key, element.entry.key, strict=True)
    ]
    return [" . ".join(key) for key in product(*parts)]


def _key_values(part: Field | Masked | Draw, value: Value, family: Family) -> list[str]:
    match part:
        case Field():
            return keys(part, value, family)
        case Masked(field=field):
            return keys(field, value, family)
        case Draw():
            assert isinstance(value, Interval)
            return [str(value.low) if value.is_point else f"{value.low}-{value.high}"]
        case _:
            assert_never(part)


def _data(element: Element, program: LegalProgram) -> str | None:
    match element.data:
        case None:
            return None
        case Dnat(addresses=addresses, ports=ports) if addresses is not None:
            address = format_address(program.family, addresses.low)
            return address if ports.interval is None else f"{address} . {ports.interval.low}"
        case Accept() | Drop() | Return() | Jump() | Goto():
            return verdict(element.data, program.called)
        case _:
            raise AssertionError(f"no map holds {element.data}")
