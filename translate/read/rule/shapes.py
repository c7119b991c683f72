"""Shapes of rules: the layouts that the lines of a large dump share.

A dump of a hundred thousand rules has a few dozen shapes: the same options in the same places, with
other values. The roles of the words depend on the options alone (the work of getopt, done by
:mod:`translate.read.rule.reader`), so they are found once per shape. Other rules of the shape are assembled
from the meanings of their values, each of which is computed once. For an unusual value :meth:`Shape.rule`
returns None, and the rule is read word by word, which also reports faults.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Final

from translate.dataclass import dataclass, field
from translate.ir import (
    Action,
    Counters,
    Family,
    Field,
    FieldTest,
    Goto,
    Hidden,
    Jump,
    Option,
    Origin,
    Rule,
    Spelled,
    Test,
    Unknown,
)
from translate.read.extensions import TARGETS, UNMODELLED_TARGETS
from translate.read.extensions.declaration import Context, MatchExtension, Options, TargetExtension
from translate.read.rule.base import RuleError, base_meaning
from translate.read.spelling.errors import NotModelledError, OptionError

__all__ = [
    "UNPRINTED",
    "Arguments",
    "BasePart",
    "JumpPart",
    "MatchPart",
    "Place",
    "Shape",
    "TargetPart",
    "Template",
]

Arguments = str | tuple[str, ...]
"""The arguments of all options of one extension, or the argument itself if there is only one."""

Template = tuple[tuple[str, int, bool], ...]
"""Options without their arguments: name, number of arguments, whether negated."""

UNPRINTED: Final = "[unsupported revision]"
"""Printed instead of the options of a revision that iptables-save does not know (``print_match_save``)."""

Place = Callable[[list[str]], Arguments]
"""A function that returns the arguments of one part, given the words of a rule."""


@dataclass(frozen=True, slots=True)
class BasePart:
    """One of ``-s``, ``-d``, ``-i``, ``-o``, ``-p`` or ``-f``, with the meanings of its values so far."""

    family: Family
    name: str
    negated: bool
    meanings: dict[str, tuple[Option, FieldTest | None]] = field(default_factory=dict)

    def meaning(self, text: str, word: int) -> tuple[Option, FieldTest | None]:
        """Return spelling and test of one value, which is word ``word``. Raises RuleError."""
        result = self.meanings.get(text)
        if result is None:
            result = base_meaning(self.family, self.name, text, word, negated=self.negated)
            self.meanings[text] = result
        return result


@dataclass(frozen=True, slots=True)
class MatchPart:
    """A match with its options, and the meanings of their arguments so far.

    ``unknown`` lists its parts that are not modelled; it then has no tests.
    """

    extension: MatchExtension
    template: Template
    context: Context
    unknown: tuple[Unknown, ...] = field(init=False)
    meanings: dict[Arguments, tuple[Spelled, tuple[Test, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "unknown", _unknown(f"-m {self.extension.name}", self.extension, self.template)
        )

    def meaning(self, arguments: Arguments) -> tuple[Spelled, tuple[Test, ...]]:
        """Return spelling and tests. Raises OptionError, and NotModelledError for values not modelled."""
        result = self.meanings.get(arguments)
        if result is None:
            spelled = self.spelled(arguments)
            meaning = None if self.unknown else self.extension.meaning
            tests = () if meaning is None else meaning(Options(spelled.options), self.context)
            result = self.meanings[arguments] = (spelled, tests)
        return result

    def effects(self, arguments: Arguments) -> tuple[Action, ...]:
        """Return what the match does to the packets for which it holds."""
        effect = self.extension.effect
        return () if effect is None else effect(Options(self.spelled(arguments).options))

    def not_last(self) -> Unknown:
        """Return the unknown part of a rule with a test behind a match that has an effect."""
        name = f"-m {self.extension.name}"
        reason = f"{name} changes packets that fail a later test of the rule"
        return Unknown(reason, self.extension.hides, self.extension.fields, extension=name)

    def spelled(self, arguments: Arguments) -> Spelled:
        """Return the spelling alone."""
        return Spelled(self.extension.name, _options(self.template, arguments))

    def not_modelled(self, error: NotModelledError) -> Unknown:
        """Return the unknown part of a rule with arguments that are not modelled."""
        name = f"-m {self.extension.name}"
        return _not_modelled(name, error, self.extension.hides, self.extension.fields)


@dataclass(frozen=True, slots=True)
class TargetPart:
    """A target with its options, and the meanings of their arguments so far.

    ``unknown`` lists its parts that are not modelled; it then has no action.
    """

    extension: TargetExtension
    template: Template
    context: Context
    unknown: tuple[Unknown, ...] = field(init=False)
    meanings: dict[Arguments, tuple[Spelled, tuple[Action, ...]]] = field(default_factory=dict)
    tests: dict[Arguments, tuple[Test, ...]] = field(default_factory=dict)
    """The effects that are tests, of those arguments whose meaning is known."""

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "unknown", _unknown(f"-j {self.extension.name}", self.extension, self.template)
        )

    def meaning(self, arguments: Arguments) -> tuple[Spelled, tuple[Action, ...]]:
        """Return spelling and action. Raises OptionError, and NotModelledError for values not modelled."""
        result = self.meanings.get(arguments)
        if result is None:
            spelled = self.spelled(arguments)
            meaning = None if self.unknown else self.extension.meaning
            effect = () if meaning is None else meaning(Options(spelled.options), self.context)
            if isinstance(effect, tuple):
                self.tests[arguments] = effect
            actions = () if isinstance(effect, tuple) else (effect,)
            result = self.meanings[arguments] = (spelled, actions)
        return result

    def spelled(self, arguments: Arguments) -> Spelled:
        """Return the spelling alone."""
        return Spelled(self.extension.name, _options(self.template, arguments))

    def not_modelled(self, error: NotModelledError) -> Unknown:
        """Return the unknown part of a rule with arguments that are not modelled."""
        return _not_modelled(f"-j {self.extension.name}", error, self.extension.hides)


@dataclass(frozen=True, slots=True)
class JumpPart:
    """``-j`` or ``-g`` to a chain, and the meanings of the names so far."""

    goto: bool
    unknown: tuple[Unknown, ...] = ()
    meanings: dict[Arguments, tuple[Spelled, tuple[Action, ...]]] = field(default_factory=dict)

    def meaning(self, chain: Arguments) -> tuple[Spelled, tuple[Action, ...]]:
        """Return spelling and action. Raises OptionError if a target has this name."""
        result = self.meanings.get(chain)
        if result is None:
            assert isinstance(chain, str)
            if chain in TARGETS or chain in UNMODELLED_TARGETS:
                raise OptionError(f'"{chain}" is a target')
            action: Action = Goto(chain) if self.goto else Jump(chain)
            result = self.meanings[chain] = (Spelled(chain), (action,))
        return result


def _not_modelled(
    spelled: str, error: NotModelledError, hides: Hidden, fields: tuple[Field, ...] = ()
) -> Unknown:
    return Unknown(f"{spelled} with {error.message} is not modelled", hides, fields, extension=spelled)


def _unknown(
    spelled: str, extension: MatchExtension | TargetExtension, template: Template
) -> tuple[Unknown, ...]:
    """Return the parts of an extension with these options that are not modelled or not shown."""
    fields = extension.fields if isinstance(extension, MatchExtension) else ()
    if template == ((UNPRINTED, 0, False),):
        reason = f"iptables-save could not print the options of {spelled} ({UNPRINTED.strip('[]')})"
        return (Unknown(reason, extension.hides, fields),)
    if extension.meaning is None:
        reason = f": {extension.reason}" if extension.reason else ""
        text = f"{spelled} is not modelled{reason}"
        return (Unknown(text, extension.hides, fields, extension=spelled, kind=extension.kind),)
    used = {name for name, _, _ in template}
    if isinstance(extension, TargetExtension) and extension.alone in used and len(used) > 1:
        reason = f"{extension.alone} together with another option of {spelled} is not modelled"
        return (Unknown(reason, extension.hides, extension=spelled),)
    return tuple(
        Unknown(
            f"{spec.name}: {spec.refused}",
            spec.hides or extension.hides,
            extension=spelled,
            kind=spec.kind,
        )
        for spec in extension.options
        if spec.refused is not None and spec.name in used
    )


def _options(template: Template, arguments: Arguments) -> tuple[Option, ...]:
    flat = (arguments,) if isinstance(arguments, str) else arguments
    options = []
    at = 0
    for name, count, negated in template:
        options.append(Option(name, flat[at : at + count], negated))
        at += count
    return tuple(options)


_NEGATION: Final = "!"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The words that are the same in all rules of one shape, and the places of all other words.

    ``comments`` are the indices of words that are comments, and ``barred`` the chains in which one of the
    options is invalid.
    """

    fixed: Arguments
    take_fixed: Place
    negations: int
    base: tuple[tuple[BasePart, int], ...]
    matches: tuple[tuple[MatchPart, Place], ...]
    comments: tuple[int, ...]
    target: tuple[TargetPart | JumpPart, Place] | None
    goto: bool
    unknown: tuple[Unknown, ...]
    barred: frozenset[str]

    @classmethod
    def places(cls, words: list[str], start: int, values: set[int]) -> tuple[Arguments, Place, int] | None:
        """Return ``fixed``, ``take_fixed`` and ``negations`` of a rule, given which words are values.

        None if a value looks like a negation, so that the two cannot be distinguished.
        """
        if any(words[at] == _NEGATION for at in values):
            return None
        take = itemgetter(*(at for at in range(start, len(words)) if at not in values))
        return take(words), take, words.count(_NEGATION)

    def rule(self, words: list[str], chain: str, counters: Counters | None, origin: Origin) -> Rule | None:
        """Return the rule of ``words``, or None if they have another shape or are unusual."""
        if self.take_fixed(words) != self.fixed or words.count(_NEGATION) != self.negations:
            return None
        if chain in self.barred:
            return None
        tests: list[Test] = []
        base = []
        matches = []
        comment = None
        try:
            # Known meanings are looked up here, which saves a hundred thousand calls.
            for part, at in self.base:
                text = words[at]
                option, test = part.meanings.get(text) or part.meaning(text, at)  # a list is a fault
                base.append(option)
                if test is not None:
                    tests.append(test)
            for match, place in self.matches:
                arguments = place(words)
                spelled, more = match.meanings.get(arguments) or match.meaning(arguments)
                matches.append(spelled)
                tests += more
            for at in self.comments:
                comment = words[at] if comment is None else f"{comment}; {words[at]}"
            target: Spelled | None = None
            actions: tuple[Action, ...] = ()
            if self.target is not None:
                leads, place = self.target
                arguments = place(words)
                target, actions = leads.meanings.get(arguments) or leads.meaning(arguments)
        except (OptionError, RuleError):
            return None
        return Rule(
            tests=tuple(tests),
            actions=actions,
            base=tuple(base),
            matches=tuple(matches),
            target=target,
            goto=self.goto,
            comment=comment,
            counters=counters,
            unknown=self.unknown,
            origin=origin,
        )
