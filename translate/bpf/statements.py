"""Statements and actions as C, inside the function of their chain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, assert_never

from translate.bpf.conditions import conditions, equals, in_key, literal, present, refuse_type
from translate.bpf.ipsets import SetMaps
from translate.bpf.maps import ARGUMENTS, MapContents, MapEntry, room_for
from translate.bpf.refusals import CannotExpress
from translate.ir import (
    RANDOM_RANGE,
    Accept,
    Action,
    Apply,
    Choose,
    Dnat,
    Drop,
    Entry,
    Family,
    Field,
    Goto,
    Interval,
    Jump,
    Log,
    Lookup,
    Masquerade,
    NatPorts,
    NfLog,
    NoTrack,
    Nth,
    Recent,
    Redirect,
    Reject,
    RejectKind,
    RestoreMark,
    Return,
    SaveMark,
    SetConnmark,
    SetMark,
    Snat,
    Statement,
    Test,
    Value,
)
from translate.passes.recents import RecentList, changes_list

__all__ = ["Number", "Writer", "action_groups", "called_chains"]


class Number(Protocol):
    """Turns a number of an action into C: its literal, or the place in a map entry that holds it."""

    def __call__(self, value: int, bits: int = 32) -> str:
        """Return the text of a number of so many bits."""
        ...


_REJECTS: Final = {
    Family.IP: {
        RejectKind.ICMP_NET_UNREACHABLE: 0,
        RejectKind.ICMP_HOST_UNREACHABLE: 1,
        RejectKind.ICMP_PROTO_UNREACHABLE: 2,
        RejectKind.ICMP_PORT_UNREACHABLE: 3,
        RejectKind.ICMP_NET_PROHIBITED: 9,
        RejectKind.ICMP_HOST_PROHIBITED: 10,
        RejectKind.ICMP_ADMIN_PROHIBITED: 13,
        RejectKind.TCP_RESET: 255,
    },
    Family.IP6: {
        RejectKind.ICMP6_NO_ROUTE: 0,
        RejectKind.ICMP6_ADM_PROHIBITED: 1,
        RejectKind.ICMP6_ADDR_UNREACHABLE: 3,
        RejectKind.ICMP6_PORT_UNREACHABLE: 4,
        RejectKind.ICMP6_POLICY_FAIL: 5,
        RejectKind.ICMP6_REJECT_ROUTE: 6,
        RejectKind.TCP_RESET: 255,
    },
}


def action_groups(statement: Statement) -> Sequence[tuple[Action, ...]]:
    """Return what a statement can do: of these, one at most."""
    match statement:
        case Apply():
            return (statement.actions,)
        case Lookup():
            return [entry.actions for entry in statement.entries]
        case Choose():
            return [branch.actions for branch in statement.branches]
        case _:
            assert_never(statement)


def called_chains(statement: Statement) -> Iterator[str]:
    """Yield the chains that a statement can go to."""
    for actions in action_groups(statement):
        for action in actions:
            if isinstance(action, Jump | Goto):
                yield action.chain


@dataclass(slots=True)
class Writer:
    """Writes statements; collects the maps that lookups need.

    ``functions`` gives the C function of each chain, ``lists`` those of ``-m recent``, ``sets`` the ipsets.
    """

    functions: dict[str, str]
    lists: Mapping[str, RecentList]
    family: Family
    sets: SetMaps
    maps: list[MapContents] = field(default_factory=list)
    declarations: list[str] = field(default_factory=list)
    counters: list[Nth] = field(default_factory=list)

    def _conditions(self, tests: Iterable[Test]) -> str:
        return conditions(tests, self.family, self.lists, self.counters, self.sets)

    def statement(self, statement: Statement) -> list[str]:
        """Return the lines of one statement. Raises CannotExpress."""
        match statement:
            case Apply(tests=tests, actions=()) if any(map(_acts, tests)):
                return [f"(void)({self._conditions(tests)});"]
            case Apply():
                return self._when(
                    self._conditions(statement.tests), self.actions(statement.actions, _literal)
                )
            case Lookup():
                return self._lookup(statement)
            case Choose():
                return self._choose(statement)
            case _:
                assert_never(statement)

    def actions(self, actions: Sequence[Action], number: Number) -> list[str]:
        """Return the lines of some actions. Raises CannotExpress."""
        return [line for action in actions for line in self._action(action, number)]

    def _when(self, condition: str, body: list[str]) -> list[str]:
        if not body:
            return []
        if condition == "1":
            return body
        return [f"if ({condition}) {{", *_indent(body), "}"]

    def _action(self, action: Action, number: Number) -> list[str]:
        match action:
            case Accept():
                return ["return ACCEPT;"]
            case Drop():
                return ["return DROP;"]
            case Return():
                return ["return CONTINUE;"]
            case Jump(chain):
                name = self.functions[chain]
                return [f"if ((verdict = {name}(skb, p)))", "\treturn verdict;"]
            case Goto(chain):
                return [f"return {self.functions[chain]}(skb, p);"]
            case Reject(kind):
                code = _REJECTS[self.family].get(kind)
                if code is None:
                    raise CannotExpress("reject-kind", f"{kind.value} is no answer of this family")
                return [f"p->reject = {code};", "return REJECT;"]
            case SetMark(value, mask):
                kept = f"(p->mark & ~{number(mask)})"
                return [f"p->mark = {kept} ^ {number(value)};"]
            case SetConnmark(value, mask):
                kept = f"(p->conn.mark & ~{number(mask)})"
                return ["if (p->has_ct)", f"\tset_connmark(p, {kept} ^ {number(value)});"]
            case SaveMark(nfmask, ctmask):
                kept = f"(p->conn.mark & ~{number(ctmask)})"
                return ["if (p->has_ct)", f"\tset_connmark(p, {kept} ^ (p->mark & {number(nfmask)}));"]
            case RestoreMark(nfmask, ctmask):
                kept = f"(p->mark & ~{number(nfmask)})"
                return ["if (p->has_ct)", f"\tp->mark = {kept} ^ (p->conn.mark & {number(ctmask)});"]
            case Log() | NfLog():
                return ["; /* not logged */"]  # emit notes it
            case NoTrack():
                return ["if (!p->has_ct && !p->attached)", "\tp->ct_state = CT_UNTRACKED;"]
            case Dnat(addresses, ports):
                return self._bind(addresses, ports, (), number)
            case Snat(addresses, ports):
                return self._bind(addresses, ports, (), number)
            case Masquerade(ports):
                return self._bind(None, ports, ("BIND_MASQUERADE",), number)
            case Redirect(ports):
                return self._bind(None, ports, ("BIND_REDIRECT",), number)
            case _:
                assert_never(action)

    def _bind(
        self, addresses: Interval | None, ports: NatPorts, flags: tuple[str, ...], number: Number
    ) -> list[str]:
        if addresses is not None:
            flags += ("BIND_ADDRESS",)
        if ports.interval is not None:
            flags += ("BIND_PORTS",)
        if ports.random or ports.fully_random:
            flags += ("BIND_RANDOM",)
        if ports.persistent:
            flags += ("BIND_PERSISTENT",)
        lines = []
        if ports.base is not None:
            flags += ("BIND_SHIFT",)
            lines = [f"p->bind_base = {number(ports.base, 16)};"]
        if not flags:
            raise CannotExpress("empty-nat", "a NAT target that binds nothing")
        arguments = []
        for interval, bits in ((addresses, self.family.bits), (ports.interval, 16)):
            if interval is None:
                arguments += ["0", "0"]
            else:
                low = number(interval.low, bits)
                arguments += [low, low if interval.is_point else number(interval.high, bits)]
        return [*lines, f"return ask_nat(p, {', '.join(arguments)}, {' | '.join(flags)});"]

    def _choose(self, statement: Choose) -> list[str]:
        body = ["drawn = bpf_get_prandom_u32() >> 1;"]
        below = 0
        some = False
        for branch in statement.branches:
            below += branch.weight
            inner = self.actions(branch.actions, _literal)
            test = "" if below == RANDOM_RANGE else f"if (drawn < {below:#x}) "
            lead = f"}} else {test}{{" if some else f"{test}{{"
            body += [lead, *_indent(inner)]
            some = True
        return self._when(self._conditions(statement.tests), [*body, "}"])

    def _lookup(self, statement: Lookup) -> list[str]:
        ranged = _ranged(statement)
        tests = self._conditions(statement.tests)
        has = present(statement.fields)
        condition = " && ".join(has if tests == "1" and has else (tests, *has))
        net = ranged.pop() if len(ranged) == 1 else None
        if ranged or (net is not None and not self._is_net(statement, net)):
            return self._when(condition, self._ladder(statement))
        return self._when(condition, ["{", *_indent(self._map(statement, net)), "}"])

    def _is_net(self, statement: Lookup, at: int) -> bool:
        values = [entry.key[at] for entry in statement.entries]
        return statement.fields[at].is_address and all(
            isinstance(value, Interval) and value.prefix_length(self.family.bits) is not None
            for value in values
        )

    def _ladder(self, statement: Lookup) -> list[str]:
        """Keys with intervals: disjoint, so that at most one of the conditions holds."""
        lines: list[str] = []
        for entry in statement.entries:
            condition = " && ".join(
                equals(f, value, self.family) for f, value in zip(statement.fields, entry.key, strict=True)
            )
            lead = "} else if" if lines else "if"
            lines += [f"{lead} ({condition}) {{", *_indent(self.actions(entry.actions, _literal))]
        return [*lines, "}"] if lines else []

    def _map(self, statement: Lookup, net: int | None) -> list[str]:
        """A hash; or, with a field that has prefixes, a trie that compares the other fields before it."""
        number = len(self.maps)
        name = f"lookup_{number}"
        rows = [self._row(statement.fields, entry) for entry in statement.entries]
        # A code is the place in the order of the texts, not in that of the rules.
        shapes = {shape: code for code, shape in enumerate(sorted({shape for shape, _ in rows}), 1)}
        order = sorted(range(len(statement.fields)), key=lambda at: at == net)
        given = [statement.fields[at] for at in order]
        addresses = [f.is_address for f in given]
        widths = [self.family.bits // 8 if one else 0 for one in addresses]
        before = 8 * sum(width or 4 for width in widths[:-1])
        entries = [
            MapEntry(
                key=self._key([entry.key[at] for at in order], None if net is None else before),
                code=shapes[shape],
                arguments=arguments,
                origin=entry.origin,
            )
            for entry, (shape, arguments) in zip(statement.entries, rows, strict=True)
        ]
        length = [] if net is None else ["length"]
        fields = (*length, *(f.text for f in given))
        made = MapContents(
            name=name,
            fields=fields,
            addresses=(*(0 for _ in length), *widths),
            entries=tuple(entries),
            room=room_for(len(entries)),
        )
        self.maps.append(made)
        members = " ".join(
            (
                *(f"u32 {one};" for one in length),
                *(f"{'struct wire' if one else 'u32'} k{i};" for i, one in enumerate(addresses)),
            )
        )
        kind = "hash" if net is None else "lpm_trie"
        self.declarations += [
            f"struct key_{number} {{ {members} }}; /* {' . '.join(fields)} */",
            f'BPF_F_TABLE("{kind}", struct key_{number}, struct entry, {name}, '
            f"{made.size}, BPF_F_NO_PREALLOC);",
        ]
        values = ", ".join(
            (
                *(f".{one} = {before + self.family.bits}" for one in length),
                *(f".k{i} = {in_key(f)}" for i, f in enumerate(given)),
            )
        )
        lines = [
            f"struct key_{number} key = {{ {values} }};",
            f"struct entry *e = {name}.lookup(&key);",
        ]
        cases: list[str] = []
        for shape, code in shapes.items():
            cases += [f"{'} else if' if cases else 'if'} (e->code == {code}) {{", *_indent(shape)]
        return [*lines, *self._when("e", [*cases, "}"])] if cases else lines

    def _key(self, values: Sequence[Value], before: int | None) -> tuple[int, ...]:
        """The numbers of a key; with ``before``, the bits in front of the net, its length comes first."""
        numbers = [value.low for value in values if isinstance(value, Interval)]
        if before is None:
            return tuple(numbers)
        net = values[-1]
        assert isinstance(net, Interval)
        length = net.prefix_length(self.family.bits)
        assert length is not None
        return before + length, *numbers

    def _row(self, fields: Sequence[Field], entry: Entry) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """The lines of an entry's actions, and the numbers that the map holds for them."""
        for tested, value in zip(fields, entry.key, strict=True):
            refuse_type(tested, value, self.family)
        arguments: list[int] = []
        shape = tuple(self.actions(entry.actions, _collect(arguments)))
        if len(arguments) > ARGUMENTS:
            raise CannotExpress("entry-size", "a lookup entry with too many numbers in its actions")
        return shape, tuple(arguments)


def _ranged(statement: Lookup) -> set[int]:
    """The fields, by number, that have names or more than points somewhere."""
    columns = [[entry.key[at] for entry in statement.entries] for at in range(len(statement.fields))]
    return {
        at
        for at, values in enumerate(columns)
        if statement.fields[at].is_name
        or not all(isinstance(value, Interval) and value.is_point for value in values)
    }


def _acts(test: Test) -> bool:
    """Whether a test is there for more than its answer."""
    return isinstance(test, Recent) and changes_list(test)


def _literal(value: int, bits: int = 32) -> str:
    return literal(value)


def _collect(arguments: list[int]) -> Number:
    def number(value: int, bits: int = 32) -> str:
        at = len(arguments)
        if bits <= 32:
            arguments.append(value)
            return f"e->argument[{at}]"
        arguments.extend(value >> shift & 0xFFFFFFFF for shift in range(bits - 32, -1, -32))
        return f"ADDRESS_AT(e, {at})"

    return number


def _indent(lines: Sequence[str]) -> list[str]:
    return [f"\t{line}" for line in lines]
