"""The words of one rule as options, as ``do_command4`` of iptables reads them with getopt.

Options are those of the rule itself (``-s``, ``-p``, …), extensions loaded by ``-m``, ``-j`` and ``-p``, and
options of the last loaded extension that has them. Their meaning is not examined here.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

from translate.dataclass import dataclass, field
from translate.ir import Counters, Family, TableName
from translate.read.extensions import MATCHES, TARGETS, UNMODELLED_MATCHES, UNMODELLED_TARGETS
from translate.read.extensions.declaration import MatchExtension, OptionSpec, TargetExtension
from translate.read.rule.base import (
    BASE_ARGUMENTS,
    BASE_ATTACHED,
    BASE_INVERTIBLE,
    BASE_OPTIONS,
    OTHER_OPTIONS,
    RuleError,
    parse_counter,
    parse_protocol,
)
from translate.read.rule.shapes import UNPRINTED, Arguments, Template
from translate.read.spelling.errors import OptionError

__all__ = ["Loaded", "RuleDraft", "collect"]

_MATCH_ALIASES: Final = {"icmpv6": "icmp6", "ipv6-icmp": "icmp6"}
_IMPLIED: Final = {1: "icmp", 6: "tcp", 17: "udp", 58: "icmp6", 132: "sctp"}


@dataclass(slots=True)
class Loaded:
    """An extension that the rule has loaded, and its options so far."""

    extension: MatchExtension | TargetExtension
    word: int
    protocol: int | None = None  # the protocol of -p when the last option was read
    options: list[tuple[str, tuple[str, ...], bool]] = field(default_factory=list)
    words: list[int] = field(default_factory=list)

    @property
    def template(self) -> Template:
        """The options without their arguments."""
        return tuple((name, len(arguments), negated) for name, arguments, negated in self.options)

    @property
    def arguments(self) -> Arguments:
        """The arguments of all options, or the argument itself if there is only one."""
        flat = tuple(text for _, arguments, _ in self.options for text in arguments)
        return flat[0] if len(flat) == 1 else flat

    @property
    def places(self) -> list[int]:
        """The indices of the words that are arguments."""
        pairs = zip(self.options, self.words, strict=True)
        return [at for (_, arguments, _), word in pairs for at in range(word + 1, word + 1 + len(arguments))]

    def fault(self, error: OptionError) -> RuleError:
        """Return the error with the index of the wrong word."""
        if error.option is None:
            return RuleError(self.word, error.message, error.hint)
        word = self.words[error.option] + error.argument
        return RuleError(word, error.message, error.hint, offset=error.offset)


@dataclass(slots=True)
class RuleDraft:
    """A rule while its words are read. Base options: name → (value, negated, index of the value)."""

    words: list[str]
    family: Family
    chain: str
    table: TableName
    base: dict[str, tuple[str, bool, int]] = field(default_factory=dict)
    matches: list[Loaded] = field(default_factory=list)
    target: Loaded | None = None
    jump: str | None = None
    jump_word: int = 0
    goto: bool = False
    counters: Counters | None = None
    own_counters: bool = False  # of -c, not before the rule
    protocol: int | None = None
    protocol_given: int | None = None  # the same, also if it is negated
    other_family: bool = False  # by -4 or -6: iptables-restore of this family skips the rule
    loaded: list[Loaded] = field(default_factory=list)  # matches and target, in the order given
    divided: list[int] = field(default_factory=list)  # words of the form "--name=value", unchanged


def collect(draft: RuleDraft, start: int) -> None:
    """Read the words of the draft from ``start`` as options. Raises RuleError for any other word.

    Words after a ``-4`` or ``-6`` of the other family are ignored, as in ``do_parse``.
    """
    words = draft.words
    at = start
    negated = False
    while at < len(words) and not draft.other_family:
        word = words[at]
        if word == "!":
            if negated:
                raise RuleError(at, "negated twice")
            negated = True
            at += 1
            continue
        base = BASE_OPTIONS.get(word)
        if base is not None:
            at = _base_option(draft, base, at, negated=negated)
        else:
            at = _other_option(draft, word, at, negated=negated)
        negated = False
    if negated:
        raise RuleError(at - 1, '"!" with nothing after it')


def _base_option(draft: RuleDraft, name: str, at: int, *, negated: bool) -> int:
    """Read a base option at word ``at``; return the index of the word after it."""
    words = draft.words
    first = at + 1
    if negated and name not in BASE_INVERTIBLE:
        raise RuleError(at, f'"{words[at]}" cannot be negated')
    if name in BASE_INVERTIBLE and name not in BASE_ARGUMENTS and first < len(words) and words[first] == "!":
        if negated:
            raise RuleError(first, "negated twice")
        negated = True
        first += 1
    after = first + BASE_ARGUMENTS.get(name, 1)
    if after > len(words):
        raise RuleError(len(words), f'"{words[at]}" needs a value')
    match name:
        case "-m":
            _load_match(draft, words[first], first)
        case "-j" | "-g":
            _load_target(draft, words[first], at, goto=name == "-g")
        case "-c":
            return _counters(draft, at)
        case "-v":
            pass
        case "-4" | "-6":
            draft.other_family = name != f"-{draft.family.version}"
        case _:
            if name in draft.base:
                raise RuleError(at, f'"{name}" is given twice')
            draft.base[name] = ("" if name == "-f" else words[first], negated, first)
            if name == "-p":
                draft.protocol_given = parse_protocol(words[first], first, negated=negated)
                draft.protocol = None if negated else draft.protocol_given
    return after


def _counters(draft: RuleDraft, at: int) -> int:
    """Read ``-c PACKETS BYTES`` or ``-c PACKETS,BYTES``; return the index of the word after it."""
    words, first = draft.words, at + 1
    if draft.own_counters:
        raise RuleError(at, '"-c" is given twice')
    packets, comma, count = words[first].partition(",")
    after = first + 1
    if not comma:
        if after >= len(words) or words[after][:1] in ("-", "!"):
            raise RuleError(after, f'"{words[at]}" needs packets and bytes')
        count = words[after]
        after += 1
    draft.counters = Counters(parse_counter(packets, first), parse_counter(count, after - 1))
    draft.own_counters = True
    return after


def _load_match(draft: RuleDraft, name: str, word: int) -> Loaded:
    known = _MATCH_ALIASES.get(name, name)
    candidates = [e for registry in (MATCHES, UNMODELLED_MATCHES) if (e := registry.get(known)) is not None]
    if not candidates:
        raise RuleError(word, f'unknown match "{name}"', _nearest(name, (*MATCHES, *UNMODELLED_MATCHES)))
    extension = next((e for e in candidates if e.family in (None, draft.family)), None)
    if extension is None:
        raise RuleError(word, f'match "{name}" does not belong to IPv{draft.family.version}')
    loaded = Loaded(extension, word)
    draft.matches.append(loaded)
    draft.loaded.append(loaded)
    return loaded


def _load_target(draft: RuleDraft, name: str, at: int, *, goto: bool) -> None:
    if draft.jump is not None:
        raise RuleError(at, "a rule has one target")
    draft.jump = name
    draft.jump_word = at + 1
    draft.goto = goto
    extension = TARGETS.get(name) or UNMODELLED_TARGETS.get(name)
    if goto:
        if extension is not None:
            raise RuleError(at + 1, f'"{name}" is a target; -g needs a chain')
        return
    if extension is None:
        return
    if extension.family is not None and extension.family is not draft.family:
        raise RuleError(at + 1, f'target "{name}" does not belong to IPv{draft.family.version}')
    if extension.tables is not None and draft.table not in extension.tables:
        tables = ", ".join(sorted(extension.tables))
        raise RuleError(at + 1, f"target {name} is not valid in table {draft.table}", f"only in {tables}")
    draft.target = Loaded(extension, at + 1)
    draft.loaded.append(draft.target)


def _other_option(draft: RuleDraft, word: str, at: int, *, negated: bool) -> int:
    """Read any other option at word ``at``, or an abbreviated base option; return the index after it."""
    words = draft.words
    if words[at : at + 2] == UNPRINTED.split() and draft.loaded and draft.loaded[-1].word == at - 1:
        draft.loaded[-1].options.append((UNPRINTED, (), False))
        draft.loaded[-1].words.append(at)
        return at + 2
    attached = word[:2] if word[:2] in BASE_ATTACHED and len(word) > 2 else None
    if attached is not None or (word.startswith("--") and "=" in word):
        word, inline = (attached, words[at][2:]) if attached is not None else word.split("=", 1)
        words[at : at + 1] = [word, inline]
        draft.divided.append(at)
    option = _find_option(draft, word, at)
    if isinstance(option, str):
        if draft.divided[-1:] == [at] and option not in BASE_ATTACHED:
            hint = "write its value as a separate word: iptables 1.8.9 reads the whole word as the value"
            raise RuleError(at, f'"{words[at]}={words[at + 1]}" is not understood', hint)
        return _base_option(draft, option, at, negated=negated)
    loaded, spec = option
    if negated and not spec.invertible:
        raise RuleError(at, f'"{spec.name}" cannot be negated')
    first = at + 1
    takes = spec.arguments or (spec.optional and first < len(words) and words[first][:1] not in ("-", "!"))
    if spec.invertible and takes and first < len(words) and words[first] == "!":
        if negated:
            raise RuleError(first, "negated twice")
        negated = True
        first += 1
    after = first + takes
    if after > len(words):
        raise RuleError(len(words), f'"{spec.name}" needs a value')
    arguments = tuple(words[first:after])
    if not spec.repeated and any(name == spec.name for name, _, _ in loaded.options):
        raise RuleError(at, f'"{spec.name}" is given twice')
    loaded.protocol = draft.protocol_given
    loaded.options.append((spec.name, arguments, negated))
    loaded.words.append(first - 1)
    return after


def _find_option(draft: RuleDraft, spelling: str, at: int) -> tuple[Loaded, OptionSpec] | str:
    """Return the extension that has an option, or the base option.

    getopt_long accepts an exact name, or else the beginning of exactly one. An unknown or ambiguous option
    loads the match of the protocol, once (``command_default``).
    """
    candidates = _known_option(draft, spelling)
    if len(candidates) != 1 and (implied := _implied(draft)) is not None:
        _load_match(draft, implied.name, at)
        candidates = _known_option(draft, spelling)
    if len(candidates) == 1:
        ((name, option),) = candidates.items()
        if option is None:
            raise RuleError(at, f'"{name}" is not an option of a rule')
        return option
    if candidates:
        raise RuleError(at, f'option "{spelling}" is ambiguous', "it may be " + ", ".join(candidates))
    if not spelling.startswith("-"):
        raise RuleError(at, f'unexpected "{spelling}"', "an option was expected here")
    raise RuleError(at, f'unknown option "{spelling}"', _whose(draft.loaded[::-1]))


def _known_option(draft: RuleDraft, spelling: str) -> dict[str, tuple[Loaded, OptionSpec] | str | None]:
    """Return the possible options for a spelling, by name; None for an option that no rule can have."""
    base = BASE_OPTIONS.get(spelling)
    if base is not None:
        return {base: base}
    # An extension that comes again keeps its place among the others (load_match merges its options once).
    latest = {loaded.extension.name: loaded for loaded in draft.loaded}
    for loaded in reversed(latest.values()):
        spec = loaded.extension.spellings.get(spelling)
        if spec is not None:
            return {spec.name: (loaded, spec)}
    candidates: dict[str, tuple[Loaded, OptionSpec] | str | None] = {}
    if len(spelling) > 2 and spelling.startswith("--"):
        for loaded in draft.loaded:
            for text, spec in loaded.extension.spellings.items():
                if text.startswith(spelling):
                    candidates[f"{spec.name} of {loaded.extension.name}"] = (loaded, spec)
        candidates |= {name: name for text, name in BASE_OPTIONS.items() if text.startswith(spelling)}
        candidates |= {text: None for text in OTHER_OPTIONS if text.startswith(spelling)}
    return candidates


def _implied(draft: RuleDraft) -> MatchExtension | None:
    """Return the match that ``-p`` loads without ``-m`` for an option that is not known (``load_proto``)."""
    if draft.protocol is None:
        return None
    extension = MATCHES.get(_IMPLIED.get(draft.protocol, ""))
    if extension is None or (extension.family or draft.family) is not draft.family:
        return None
    if any(loaded.extension is extension for loaded in draft.matches):
        return None
    return extension


def _whose(loaded: list[Loaded]) -> str | None:
    """Return a hint that lists the options of the rule's extensions."""
    names = [spec.name for load in loaded for spec in load.extension.options]
    return "options that could stand here: " + ", ".join(names) if names else None


def _nearest(name: str, candidates: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(candidates), n=1)
    return f"did you mean {close[0]}?" if close else "iptables has no match of this name"
