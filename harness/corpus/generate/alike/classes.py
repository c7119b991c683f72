"""Classes of members of equal shape, and the representatives of each class.

Only the representatives are searched for every goal. They are the first and the last member of each class,
the members with the lowest and the highest destination of each chain, and pairs of neighbours. Neighbours
have adjacent addresses, ports or prefixes, or share one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from harness.corpus.generate.addresses import Places
from harness.corpus.generate.alike.groups import Kind, Member, members_of
from harness.corpus.generate.selection import Place, Selection
from translate.dataclass import dataclass, replace
from translate.ir import Interval, Rule, Ruleset

__all__ = ["Class", "Classes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Class:
    """Members of equal shape: the searched representatives, of which the first is the model, and others."""

    searched: tuple[Member, ...]
    others: tuple[Member, ...]

    @property
    def common_ranges(self) -> frozenset[Interval]:
        """The ranges of addresses or ports that all members have at the same position of their constants."""
        members = (*self.searched, *self.others)
        columns = zip(*(member.constants for member in members), strict=True)
        common = (column[0].value for column in columns if len(set(column)) == 1)
        return frozenset(v for v in common if isinstance(v, Interval) and not v.is_point)


@dataclass(frozen=True, slots=True)
class Classes:
    """The classes of a ruleset of which not every member is searched.

    ``shapes`` has all members by shape, also the members of classes of which every member is searched.
    """

    ruleset: Ruleset
    classes: tuple[Class, ...]
    shapes: tuple[tuple[Member, ...], ...] = ()

    @classmethod
    def of(cls, ruleset: Ruleset, places: Places) -> Classes:
        """Return the classes of ``ruleset``."""
        members = members_of(ruleset)
        by_shape: dict[Hashable, list[Member]] = {}
        for member in members:
            by_shape.setdefault(member.shape, []).append(member)
        searched = set(_representatives(members, by_shape.values(), places))
        return cls(ruleset, tuple(_split(by_shape.values(), searched)), tuple(map(tuple, by_shape.values())))

    def with_searched(self, more: Iterable[Member]) -> Classes:
        """Return the same classes with more members to search."""
        searched = {member for group in self.classes for member in group.searched}.union(more)
        every = [(*group.searched, *group.others) for group in self.classes]
        return replace(self, classes=tuple(_split(every, searched)))

    @property
    def chosen(self) -> Selection | None:
        """The rules to search for; None: all."""
        left_out = {place for group in self.classes for member in group.others for place in member.places}
        return Selection.without(self.ruleset, left_out) if left_out else None

    def models(self) -> Iterator[tuple[Place, Rule]]:
        """Yield each rule of a member that is not searched, and the rule of the model at its position."""
        chains = {(t.name, chain.name): chain for t in self.ruleset.tables for chain in t.chains}
        for group in self.classes:
            rules = [chains[table, chain].rules[index] for table, chain, index in group.searched[0].places]
            for member in group.others:
                yield from zip(member.places, rules, strict=True)


def _split(classes: Iterable[Iterable[Member]], searched: set[Member]) -> Iterator[Class]:
    for members in classes:
        others = tuple([m for m in members if m not in searched])
        if others:
            yield Class(searched=tuple([m for m in members if m in searched]), others=others)


def _representatives(
    members: list[Member], classes: Iterable[list[Member]], places: Places
) -> Iterator[Member]:
    chosen: dict[Member, None] = {}
    for group in classes:
        chosen |= {group[0]: None, group[-1]: None}
    chosen |= dict.fromkeys(_ends(members))
    chosen |= dict.fromkeys(_by_target_places(members, places))
    best: dict[str, tuple[int, tuple[Member, Member]]] = {}
    for kind, one_of, other in _neighbours(members):
        known = (one_of in chosen) + (other in chosen)
        if kind not in best or known > best[kind][0]:
            best[kind] = known, (one_of, other)
    for _, pair in best.values():
        chosen |= dict.fromkeys(pair)
    yield from chosen


def _ends(members: Iterable[Member]) -> Iterator[Member]:
    """Yield the members with the lowest and the highest address (without one: port) of each shared chain."""
    ends: dict[Hashable, list[tuple[int, Member]]] = {}
    for member in members:
        for (table, chain, _), (address, _, port) in zip(member.entries, member.keys, strict=True):
            for what, value in (("address", address), ("port", port)):
                if value is None or (what == "port" and address is not None):
                    continue
                low = ends.setdefault((table, chain, what, "low"), [(value.low, member)])
                high = ends.setdefault((table, chain, what, "high"), [(value.low, member)])
                if value.low < low[0][0]:
                    low[0] = value.low, member
                if value.low > high[0][0]:
                    high[0] = value.low, member
    for ((_, member),) in ends.values():
        yield member


def _by_target_places(members: Iterable[Member], places: Places) -> Iterator[Member]:
    """Yield one member for each combination of target places: on the node, in its networks, or beyond."""
    known: set[frozenset[str | None]] = set()
    for member in members:
        targets = [c.value for c in member.targets if isinstance(c.value, Interval)]
        links = {places.behind(value.low) for value in targets}
        kinds = frozenset(link if link in (None, "", places.exit) else "inside" for link in links)
        if kinds not in known:
            known.add(kinds)
            yield member


def _neighbours(members: Iterable[Member]) -> Iterator[tuple[str, Member, Member]]:
    """Yield pairs of members that share a constant or have adjacent ones, each with its kind."""
    keys: dict[tuple[int | None, int | None, int | None], Member] = {}
    addresses: dict[int, Member] = {}
    ports: dict[tuple[int | None, int], Member] = {}
    targets: dict[Hashable, Member] = {}
    ranges: dict[Interval, Member] = {}
    for member in members:
        for address, proto, port in member.keys:
            at = None if address is None else address.low
            number = None if port is None else port.low
            pairs: list[tuple[str, Member | None]] = []
            if at is not None:
                pairs += (("same address", addresses.get(at)),)
                pairs += (("adjacent addresses", addresses.get(at + step)) for step in (-1, 1))
                addresses[at] = member
            if number is not None:
                pairs += (("same port", ports.get((proto, number))),)
                pairs += (("adjacent ports", keys.get((at, proto, number + step))) for step in (-1, 1))
                pairs += (("other protocol", keys.get((at, p, number))) for p in (6, 17, 132) if p != proto)
                ports[proto, number] = member
            keys[at, proto, number] = member
            for kind, other in pairs:
                if other is not None and other is not member:
                    yield f"{kind}{'' if address else ' of the node'}", other, member
        for target in member.targets:
            other = targets.setdefault(target, member)
            if other is not member:
                yield "same target", other, member
        for kind, value in member.constants:
            if kind == Kind.ADDRESS and isinstance(value, Interval) and not value.is_point:
                ranges.setdefault(value, member)
    yield from _ranges(ranges)


def _ranges(ranges: dict[Interval, Member]) -> Iterator[tuple[str, Member, Member]]:
    """Yield pairs of members with adjacent ranges, and pairs in which one range contains the other."""
    around: list[Interval] = []
    ends: dict[int, Interval] = {}
    for interval in sorted(ranges, key=lambda r: (r.low, -r.high)):
        while around and around[-1].high < interval.low:
            around.pop()
        for kind, other in (
            ("range in a range", around[-1] if around else None),
            ("adjacent ranges", ends.get(interval.low - 1)),
        ):
            if other is not None and ranges[other] is not ranges[interval]:
                yield kind, ranges[other], ranges[interval]
        around.append(interval)
        ends[interval.high] = interval
