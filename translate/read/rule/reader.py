"""One rule: its words as tests and actions.

``options`` groups the words by option. Meanings are computed at the end, because the meaning of an extension
may depend on ``-p``. They are cached: the rules of a large ruleset repeat the same options and differ only in
addresses, comments and chains.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Final

from translate.ir import (
    Account,
    Action,
    Counters,
    Family,
    Option,
    Origin,
    Rule,
    Spelled,
    TableName,
    Test,
    Unknown,
)
from translate.read.extensions.declaration import Context, MatchExtension, TargetExtension
from translate.read.rule.base import (
    BASE_ORDER,
    NO_INTERFACE,
    RuleError,
)
from translate.read.rule.options import Loaded, RuleDraft, collect
from translate.read.rule.shapes import (
    Arguments,
    BasePart,
    JumpPart,
    MatchPart,
    Place,
    Shape,
    TargetPart,
)
from translate.read.spelling.errors import NotModelledError, OptionError

__all__ = ["RuleReader"]

_MOST_SHAPES: Final = 16
"""The most shapes of rules that are kept for one number of words and first word; a dump has one or two."""


class RuleReader:
    """Reader of the rules of one family; one instance serves a whole ruleset, because it caches meanings."""

    def __init__(self, family: Family) -> None:
        self._family = family
        self._base: dict[tuple[str, bool], BasePart] = {}
        self._matches: dict[tuple[object, ...], MatchPart] = {}
        self._targets: dict[tuple[object, ...], TargetPart] = {}
        self._jumps = {goto: JumpPart(goto) for goto in (False, True)}
        self._shapes: dict[tuple[object, ...], list[Shape]] = {}

    @property
    def family(self) -> Family:
        """The family whose rules are read."""
        return self._family

    def read(
        self,
        words: list[str],
        start: int,
        *,
        table: TableName,
        chain: str,
        counters: Counters | None,
        origin: Origin,
    ) -> list[Rule]:
        """Return the rules for ``words[start:]``; raises RuleError.

        The result is one rule, or with a list in ``-s`` or ``-d`` one for each pair of addresses, in
        iptables' order. It is empty if the rule is for the other family (``-4`` or ``-6``).
        """
        outline = (table, start, len(words), words[start] if start < len(words) else None)
        shapes = self._shapes.setdefault(outline, [])
        for shape in shapes:
            rule = shape.rule(words, chain, counters, origin)
            if rule is not None:
                return [rule]
        draft = RuleDraft(words=words, family=self._family, chain=chain, table=table, counters=counters)
        try:
            collect(draft, start)
            if draft.other_family:
                return []
            rules = self._rules(draft, origin)
            if len(shapes) < _MOST_SHAPES and (learnt := self._shape(draft, start)) is not None:
                shapes.append(learnt)
            return rules
        except RuleError as error:
            for at in reversed(draft.divided):  # report the word as it is in the line
                error.word -= error.word > at
            raise

    def _rules(self, draft: RuleDraft, origin: Origin) -> list[Rule]:
        base_lists = self._base_lists(draft)
        tests: list[Test] = []
        spelled: list[Spelled] = []
        comments: list[str] = []
        unknown: list[Unknown] = []
        effects: tuple[Action, ...] = ()
        changing: MatchPart | None = None
        for loaded in draft.matches:
            part = self._match_part(loaded, draft)
            unknown += part.unknown
            try:
                spelling, more = part.meaning(loaded.arguments)
            except NotModelledError as error:
                spelling, more = part.spelled(loaded.arguments), ()
                unknown.append(part.not_modelled(error))
            except OptionError as error:
                raise loaded.fault(error) from None
            spelled.append(spelling)
            tests += more
            if changing is not None and not all(isinstance(test, Account) for test in more):
                unknown.append(changing.not_last())
            if changes := part.effects(loaded.arguments):
                effects, changing = (*effects, *changes), part
            if loaded.extension.name == "comment":
                comments.append(spelling.options[0].arguments[0])
        target, actions, unknown_effects = self._target_meaning(draft)
        unknown += unknown_effects
        if draft.target is not None:
            tests += self._target_part(draft.target, draft).tests.get(draft.target.arguments, ())
        actions = (*effects, *actions) if effects else actions
        matches = tuple(spelled)
        comment = "; ".join(comments) if comments else None
        rules = []
        for base_tests, base in base_lists:
            rules.append(
                Rule(
                    tests=(*base_tests, *tests),
                    actions=actions,
                    base=base,
                    matches=matches,
                    target=target,
                    goto=draft.goto,
                    comment=comment,
                    counters=draft.counters,
                    unknown=tuple(unknown),
                    origin=origin,
                )
            )
        return rules

    def _target_meaning(
        self, draft: RuleDraft
    ) -> tuple[Spelled | None, tuple[Action, ...], tuple[Unknown, ...]]:
        """Return spelling and action of the target or jump, and what of it is not modelled."""
        if draft.jump is None:
            return None, (), ()
        if draft.target is None:
            return *self._jumps[draft.goto].meaning(draft.jump), ()
        part, arguments = self._target_part(draft.target, draft), draft.target.arguments
        try:
            return *part.meaning(arguments), part.unknown
        except NotModelledError as error:
            return part.spelled(arguments), (), (*part.unknown, part.not_modelled(error))
        except OptionError as error:
            raise draft.target.fault(error) from None

    def _base_part(self, name: str, *, negated: bool) -> BasePart:
        return self._base.setdefault((name, negated), BasePart(self._family, name, negated))

    def _match_part(self, loaded: Loaded, draft: RuleDraft) -> MatchPart:
        extension = loaded.extension
        assert isinstance(extension, MatchExtension)
        key = (extension.name, draft.table, draft.protocol, loaded.protocol, loaded.template)
        part = self._matches.get(key)
        if part is None:
            context = self._context(draft, loaded)
            part = self._matches[key] = MatchPart(extension, loaded.template, context)
        return part

    def _target_part(self, loaded: Loaded, draft: RuleDraft) -> TargetPart:
        extension = loaded.extension
        assert isinstance(extension, TargetExtension)
        key = (extension.name, draft.table, draft.protocol, loaded.protocol, loaded.template)
        part = self._targets.get(key)
        if part is None:
            context = self._context(draft, loaded)
            part = self._targets[key] = TargetPart(extension, loaded.template, context)
        return part

    def _shape(self, draft: RuleDraft, start: int) -> Shape | None:
        """Return the shape of a rule that has been read, or None for an unusual rule.

        ``-f``, counters, ``--name=value`` inside a rule, matches with an effect and targets whose effect is a
        test are too rare in dumps to be worth a shape.
        """
        words = draft.words
        if draft.own_counters or draft.divided or "-f" in draft.base or start == len(words):
            return None
        if any(self._match_part(loaded, draft).effects(loaded.arguments) for loaded in draft.matches):
            return None
        values = {at for loaded in draft.loaded for at in loaded.places}
        values |= {at for name, (_, _, at) in draft.base.items() if name != "-p"}
        target: tuple[TargetPart | JumpPart, Place] | None = None
        if draft.target is not None:
            part = self._target_part(draft.target, draft)
            if part.tests:
                return None
            target = part, _place(draft.target.places)
        elif draft.jump is not None:
            target = self._jumps[draft.goto], _place([draft.jump_word])
            values.add(draft.jump_word)
        places = Shape.places(words, start, values)
        if places is None:
            return None
        fixed, take_fixed, negations = places
        return Shape(
            fixed=fixed,
            take_fixed=take_fixed,
            negations=negations,
            base=tuple(
                (self._base_part(name, negated=draft.base[name][1]), draft.base[name][2])
                for name in BASE_ORDER
                if name in draft.base
            ),
            matches=tuple(
                (self._match_part(given_match, draft), _place(given_match.places))
                for given_match in draft.matches
            ),
            comments=tuple(
                at
                for given_match in draft.matches
                if given_match.extension.name == "comment"
                for at in given_match.places
            ),
            target=target,
            goto=draft.goto,
            unknown=(
                *(unknown for match in draft.matches for unknown in self._match_part(match, draft).unknown),
                *(() if target is None else target[0].unknown),
            ),
            barred=frozenset[str]().union(*(NO_INTERFACE.get(name, ()) for name in draft.base)),
        )

    def _context(self, draft: RuleDraft, loaded: Loaded) -> Context:
        return Context(
            family=self._family, table=draft.table, protocol=draft.protocol, protocol_before=loaded.protocol
        )

    def _base_lists(self, draft: RuleDraft) -> list[tuple[tuple[Test, ...], tuple[Option, ...]]]:
        """Return tests and spelling of the base options, for each rule of the line."""
        lists: list[tuple[tuple[Test, ...], tuple[Option, ...]]] = [((), ())]
        for name in BASE_ORDER:
            option = draft.base.get(name)
            if option is None:
                continue
            text, negated, word = option
            values = text.split(",") if name in ("-s", "-d") else [text]
            if len(values) > 1 and negated:
                raise RuleError(word, "a list of addresses cannot be negated")
            parts = []
            for value in values:
                parts.append(self._base_part(name, negated=negated).meaning(value, word))
            if draft.chain in NO_INTERFACE.get(name, ()):
                raise RuleError(word - 1, f"{name} cannot be used in {draft.chain}")
            lists = [
                (tests if test is None else (*tests, test), (*base, option))
                for tests, base in lists
                for option, test in parts
            ]
        return lists


def _place(at: list[int]) -> Place:
    """Return the function that returns these words of a rule."""
    return itemgetter(*at) if at else _nothing


def _nothing(_words: list[str]) -> Arguments:
    return ()
