"""The words of one rule, as meaning.

:class:`RuleReader` is a small copy of what ``do_command4`` of iptables does with getopt: options of
the rule itself (``-s``, ``-p``, …), extensions loaded by ``-m``, ``-j`` and ``-p``, and options that
belong to the extension loaded last that knows them. Meanings are worked out at the end, because an
extension may look at ``-p``, and are remembered: large rulesets say the same few things over and
over, and only addresses, comments and chains differ.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final

from translate.ir import (
    Action,
    Counters,
    Family,
    Option,
    Origin,
    Rule,
    Spelled,
    TableName,
    Test,
)
from translate.read.base import (
    BASE_ARGUMENTS,
    BASE_INVERTIBLE,
    BASE_OPTIONS,
    BASE_ORDER,
    NO_INTERFACE,
    RuleError,
    parse_counters,
    parse_protocol,
)
from translate.read.declaration import (
    Context,
    MatchExtension,
    OptionError,
    OptionSpec,
    TargetExtension,
)
from translate.read.extensions import MATCHES, TARGETS, UNREAD_TARGETS
from translate.read.shapes import (
    Arguments,
    BasePart,
    JumpPart,
    MatchPart,
    Place,
    Shape,
    TargetPart,
    Template,
)

__all__ = ["RuleReader"]

_MOST_SHAPES: Final = 16
"""The most shapes of rules that are kept for one length and first word; a dump has one or two."""

_MATCH_ALIASES: Final = {"icmpv6": "icmp6", "ipv6-icmp": "icmp6"}
_IMPLIED: Final = {1: "icmp", 6: "tcp", 17: "udp", 58: "icmp6", 132: "sctp"}


@dataclass(slots=True)
class _Loaded:
    """An extension that the rule has loaded, and the options that it was given so far."""

    extension: MatchExtension | TargetExtension
    word: int
    options: list[tuple[str, tuple[str, ...], bool]] = field(default_factory=list)
    words: list[int] = field(default_factory=list)

    @property
    def template(self) -> Template:
        return tuple((name, len(arguments), negated) for name, arguments, negated in self.options)

    @property
    def arguments(self) -> Arguments:
        flat = tuple(text for _, arguments, _ in self.options for text in arguments)
        return flat[0] if len(flat) == 1 else flat

    @property
    def places(self) -> list[int]:
        """The indices of the words that are arguments."""
        given = zip(self.options, self.words, strict=True)
        return [at for (_, arguments, _), word in given for at in range(word + 1, word + 1 + len(arguments))]

    def fault(self, error: OptionError) -> RuleError:
        if error.option is None:
            return RuleError(self.word, error.message, error.hint)
        word = self.words[error.option] + error.argument
        return RuleError(word, error.message, error.hint, offset=error.offset)


@dataclass(slots=True)
class _Draft:
    """A rule while its words are read. Base options: name → (value, negated, index of the value)."""

    words: list[str]
    chain: str
    table: TableName
    base: dict[str, tuple[str, bool, int]] = field(default_factory=dict)
    matches: list[_Loaded] = field(default_factory=list)
    target: _Loaded | None = None
    jump: str | None = None
    jump_word: int = 0
    goto: bool = False
    counters: Counters | None = None
    own_counters: bool = False  # given by -c, not before the rule
    protocol: int | None = None
    loaded: list[_Loaded] = field(default_factory=list)  # matches and target, in the order given
    divided: list[int] = field(default_factory=list)  # words that were "--name=value", as found


class RuleReader:
    """Reads rules of one family; one instance for a whole ruleset, because it remembers."""

    def __init__(self, family: Family) -> None:
        self._family = family
        self._base: dict[tuple[str, bool], BasePart] = {}
        self._matches: dict[tuple[object, ...], MatchPart] = {}
        self._targets: dict[tuple[object, ...], TargetPart] = {}
        self._jumps = {goto: JumpPart(goto) for goto in (False, True)}
        self._shapes: dict[tuple[object, ...], list[Shape]] = {}

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
        """Return the rules that ``words[start:]`` stand for; raises RuleError.

        There is one, unless ``-s`` or ``-d`` holds a list: then one for each pair of addresses, in
        iptables' order.
        """
        outline = (table, start, len(words), words[start] if start < len(words) else None)
        shapes = self._shapes.setdefault(outline, [])
        for shape in shapes:
            rule = shape.rule(words, chain, counters, origin)
            if rule is not None:
                return [rule]
        draft = _Draft(words=words, chain=chain, table=table, counters=counters)
        try:
            self._collect(draft, start)
            rules = self._rules(draft, origin)
            if len(shapes) < _MOST_SHAPES and (learnt := self._shape(draft, start)) is not None:
                shapes.append(learnt)
            return rules
        except RuleError as error:
            for at in reversed(draft.divided):  # name the word that the line has
                error.word -= error.word > at
            raise

    # -- words to options ------------------------------------------------------------------------

    def _collect(self, draft: _Draft, start: int) -> None:
        words = draft.words
        at = start
        negated = False
        while at < len(words):
            word = words[at]
            if word == "!":
                if negated:
                    raise RuleError(at, "negated twice")
                negated = True
                at += 1
                continue
            base = BASE_OPTIONS.get(word)
            if base is not None:
                at = self._base_option(draft, base, at, negated=negated)
            else:
                at = self._extension_option(draft, word, at, negated=negated)
            negated = False
        if negated:
            raise RuleError(at - 1, '"!" with nothing after it')

    def _base_option(self, draft: _Draft, name: str, at: int, *, negated: bool) -> int:
        """Take a base option at word ``at``; return the index of the word after it."""
        words = draft.words
        first = at + 1
        if negated and name not in BASE_INVERTIBLE:
            raise RuleError(at, f'"{words[at]}" cannot be negated')
        if name in BASE_INVERTIBLE and name != "-f" and first < len(words) and words[first] == "!":
            if negated:
                raise RuleError(first, "negated twice")
            negated = True
            first += 1
        after = first + BASE_ARGUMENTS.get(name, 1)
        if after > len(words):
            raise RuleError(len(words), f'"{words[at]}" needs a value')
        match name:
            case "-m":
                self._load_match(draft, words[first], first)
            case "-j" | "-g":
                self._load_target(draft, words[first], at, goto=name == "-g")
            case "-c":
                draft.counters = parse_counters(words, first)
                draft.own_counters = True
            case _:
                if name in draft.base:
                    raise RuleError(at, f'"{name}" is given twice')
                draft.base[name] = ("" if name == "-f" else words[first], negated, first)
                if name == "-p":
                    draft.protocol = parse_protocol(words[first], first, negated=negated)
        return after

    def _load_match(self, draft: _Draft, name: str, word: int) -> _Loaded:
        extension = MATCHES.get(_MATCH_ALIASES.get(name, name))
        if extension is None:
            raise RuleError(
                word, f'unknown match "{name}"', "matches that are read: " + ", ".join(sorted(MATCHES))
            )
        if extension.family is not None and extension.family is not self._family:
            raise RuleError(word, f'match "{name}" does not belong to IPv{self._family.version}')
        loaded = _Loaded(extension, word)
        draft.matches.append(loaded)
        draft.loaded.append(loaded)
        return loaded

    def _load_target(self, draft: _Draft, name: str, at: int, *, goto: bool) -> None:
        if draft.jump is not None:
            raise RuleError(at, "a rule has one target")
        draft.jump = name
        draft.jump_word = at + 1
        draft.goto = goto
        extension = TARGETS.get(name)
        if goto:
            if extension is not None or name in UNREAD_TARGETS:
                raise RuleError(at + 1, f'"{name}" is a target; -g needs a chain')
            return
        if name in UNREAD_TARGETS:
            raise RuleError(
                at + 1,
                f'target "{name}" is not read',
                "targets that are read: " + ", ".join(sorted(TARGETS)),
            )
        if extension is None:
            return
        if extension.tables is not None and draft.table not in extension.tables:
            tables = ", ".join(sorted(extension.tables))
            raise RuleError(at + 1, f"target {name} is not valid in table {draft.table}", f"only in {tables}")
        draft.target = _Loaded(extension, at + 1)
        draft.loaded.append(draft.target)

    def _extension_option(self, draft: _Draft, word: str, at: int, *, negated: bool) -> int:
        """Take an option of an extension at word ``at``; return the index of the word after it."""
        words = draft.words
        if word.startswith("--") and "=" in word:
            word, _, inline = word.partition("=")
            words[at : at + 1] = [word, inline]
            draft.divided.append(at)
        found = self._find_option(draft, word, at)
        if isinstance(found, str):
            return self._base_option(draft, found, at, negated=negated)
        loaded, spec = found
        if spec.refused is not None:
            raise RuleError(at, f'option "{spec.name}" is not read', spec.refused)
        if negated and not spec.invertible:
            raise RuleError(at, f'"{spec.name}" cannot be negated')
        first = at + 1
        if spec.invertible and spec.arguments and first < len(words) and words[first] == "!":
            if negated:
                raise RuleError(first, "negated twice")
            negated = True
            first += 1
        after = first + spec.arguments
        if after > len(words):
            raise RuleError(len(words), f'"{spec.name}" needs a value')
        arguments = tuple(words[first:after])
        if any(name == spec.name for name, _, _ in loaded.options):
            raise RuleError(at, f'"{spec.name}" is given twice')
        loaded.options.append((spec.name, arguments, negated))
        loaded.words.append(first - 1)
        return after

    def _find_option(self, draft: _Draft, spelling: str, at: int) -> tuple[_Loaded, OptionSpec] | str:
        """Return the extension that takes an option, or the base option that it abbreviates.

        getopt_long takes an exact name first, otherwise a prefix that only one option has.
        """
        loaded = draft.loaded[::-1]
        for one in loaded:
            spec = one.extension.spellings.get(spelling)
            if spec is not None:
                return one, spec
        implied = self._implied(draft)
        if implied is not None and any(text.startswith(spelling) for text in implied.spellings):
            loaded = [self._load_match(draft, implied.name, at), *loaded]
            spec = implied.spellings.get(spelling)
            if spec is not None:
                return loaded[0], spec
        if len(spelling) > 2 and spelling.startswith("--"):
            found: dict[str, tuple[_Loaded, OptionSpec] | str] = {}
            for one in reversed(loaded):
                for text, spec in one.extension.spellings.items():
                    if text.startswith(spelling):
                        found[spec.name] = (one, spec)
            found |= {name: name for text, name in BASE_OPTIONS.items() if text.startswith(spelling)}
            if len(found) == 1:
                return next(iter(found.values()))
            if found:
                raise RuleError(at, f'option "{spelling}" is ambiguous', "it may be " + ", ".join(found))
        if not spelling.startswith("-"):
            raise RuleError(at, f'unexpected "{spelling}"', "an option was expected here")
        raise RuleError(at, f'unknown option "{spelling}"', _whose(loaded))

    def _implied(self, draft: _Draft) -> MatchExtension | None:
        """The match that ``-p`` alone loads when an option is not otherwise known (``load_proto``)."""
        if draft.protocol is None:
            return None
        extension = MATCHES.get(_IMPLIED.get(draft.protocol, ""))
        if extension is None or (extension.family or self._family) is not self._family:
            return None
        if any(one.extension is extension for one in draft.matches):
            return None
        return extension

    # -- options to meaning ----------------------------------------------------------------------

    def _rules(self, draft: _Draft, origin: Origin) -> list[Rule]:
        base_lists = self._base_lists(draft)
        tests: list[Test] = []
        spelled: list[Spelled] = []
        comments: list[str] = []
        for loaded in draft.matches:
            try:
                said, more = self._match_part(loaded, draft).meaning(loaded.arguments)
            except OptionError as error:
                raise loaded.fault(error) from None
            spelled.append(said)
            tests += more
            if loaded.extension.name == "comment":
                comments.append(said.options[0].arguments[0])
        target, actions = self._target_meaning(draft)
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
                    origin=origin,
                )
            )
        return rules

    def _target_meaning(self, draft: _Draft) -> tuple[Spelled | None, tuple[Action, ...]]:
        if draft.jump is None:
            return None, ()
        if draft.target is None:
            return self._jumps[draft.goto].meaning(draft.jump)
        try:
            return self._target_part(draft.target, draft).meaning(draft.target.arguments)
        except OptionError as error:
            raise draft.target.fault(error) from None

    def _base_part(self, name: str, *, negated: bool) -> BasePart:
        return self._base.setdefault((name, negated), BasePart(self._family, name, negated))

    def _match_part(self, loaded: _Loaded, draft: _Draft) -> MatchPart:
        extension = loaded.extension
        assert isinstance(extension, MatchExtension)
        key = (extension.name, draft.table, draft.protocol, loaded.template)
        part = self._matches.get(key)
        if part is None:
            part = self._matches[key] = MatchPart(extension, loaded.template, self._context(draft))
        return part

    def _target_part(self, loaded: _Loaded, draft: _Draft) -> TargetPart:
        extension = loaded.extension
        assert isinstance(extension, TargetExtension)
        key = (extension.name, draft.table, draft.protocol, loaded.template)
        part = self._targets.get(key)
        if part is None:
            part = self._targets[key] = TargetPart(extension, loaded.template, self._context(draft))
        return part

    def _shape(self, draft: _Draft, start: int) -> Shape | None:
        """Return the shape of a rule that has been read, or None for one that has none.

        ``-f``, counters and ``--name=value`` inside a rule are too rare in dumps to be worth one.
        """
        words = draft.words
        if draft.own_counters or draft.divided or "-f" in draft.base or start == len(words):
            return None
        values = {at for loaded in draft.loaded for at in loaded.places}
        values |= {at for name, (_, _, at) in draft.base.items() if name != "-p"}
        target: tuple[TargetPart | JumpPart, Place] | None = None
        if draft.target is not None:
            target = self._target_part(draft.target, draft), _place(draft.target.places)
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
            matches=tuple((self._match_part(one, draft), _place(one.places)) for one in draft.matches),
            comments=tuple(
                at for one in draft.matches if one.extension.name == "comment" for at in one.places
            ),
            target=target,
            goto=draft.goto,
            barred=frozenset[str]().union(*(NO_INTERFACE.get(name, ()) for name in draft.base)),
        )

    def _context(self, draft: _Draft) -> Context:
        return Context(family=self._family, table=draft.table, protocol=draft.protocol)

    def _base_lists(self, draft: _Draft) -> list[tuple[tuple[Test, ...], tuple[Option, ...]]]:
        """Return tests and spelling of the base options, once for each rule that they stand for."""
        lists: list[tuple[tuple[Test, ...], tuple[Option, ...]]] = [((), ())]
        for name in BASE_ORDER:
            given = draft.base.get(name)
            if given is None:
                continue
            text, negated, word = given
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
    """Return what takes these words out of a rule."""
    return itemgetter(*at) if at else _nothing


def _nothing(_words: list[str]) -> Arguments:
    return ()


def _whose(loaded: list[_Loaded]) -> str | None:
    """A hint: which options the extensions of the rule have."""
    names = [spec.name for one in loaded for spec in one.extension.options if spec.refused is None]
    return "options that could stand here: " + ", ".join(names) if names else None
