"""Commands and their options, as their argument parsers declare them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

from translate.dataclass import dataclass

__all__ = ["Command", "Option", "OptionGroup", "read_parser"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option, or an argument without a name. ``choices`` are the values that it accepts, if listed."""

    spellings: tuple[str, ...]
    value: str
    """The placeholder of its value, as ``--help`` prints it; empty if it has none."""
    help: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionGroup:
    """Options under one title of ``--help``."""

    title: str
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One parser. ``path`` is the words that select it, ``nfparity`` first."""

    path: tuple[str, ...]
    summary: str
    description: str
    usage: str
    epilog: str
    groups: tuple[OptionGroup, ...]
    actions: tuple[Command, ...]

    @property
    def options(self) -> tuple[Option, ...]:
        """Every option with a name."""
        return tuple(option for group in self.groups for option in group.options if option.spellings)

    @property
    def arguments(self) -> tuple[Option, ...]:
        """Every argument without a name."""
        return tuple(option for group in self.groups for option in group.options if not option.spellings)

    def walk(self) -> Iterator[Command]:
        """Yield this command, and all below it."""
        yield self
        for action in self.actions:
            yield from action.walk()


def read_parser(parser: argparse.ArgumentParser, summary: str) -> Command:
    """Return the command of a parser, with all its actions. ``summary`` is one line."""
    path = tuple(parser.prog.split())
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    actions = [
        read_parser(action.choices[choice.dest], choice.help or "")
        for action in below
        for choice in action._choices_actions
    ]
    groups = tuple(
        OptionGroup(title=group.title or "", options=options)
        for group in parser._action_groups
        if (options := tuple(_options(parser, group)))
    )
    usage = re.sub(r"\s+", " ", parser.format_usage().removeprefix("usage: ")).strip()
    return Command(
        path=path,
        summary=summary,
        description=parser.description or summary,
        usage=usage,
        epilog=parser.epilog or "",
        groups=groups,
        actions=tuple(actions),
    )


def _options(parser: argparse.ArgumentParser, group: argparse._ArgumentGroup) -> Iterator[Option]:
    formatter = parser._get_formatter()
    for action in group._group_actions:
        if action.help == argparse.SUPPRESS or isinstance(action, argparse._SubParsersAction):
            continue
        named = bool(action.option_strings)
        default = action.dest.upper() if named else action.dest
        yield Option(
            spellings=tuple(action.option_strings),
            value="" if named and action.nargs == 0 else formatter._format_args(action, default),
            help=formatter._expand_help(action) if action.help else "",
            choices=tuple(map(str, action.choices or ())),
        )
