"""Argument parser with two-line errors that suggest the probable spelling."""

from __future__ import annotations

import argparse
import difflib
import itertools
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from translate.errors import InputError

__all__ = ["Parser", "UsageError"]


class UsageError(InputError):
    """An invalid command line."""


class Parser(argparse.ArgumentParser):
    """Argument parser that raises UsageError instead of ending the process.

    The message is followed by the usage of the command in question, on one line.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(*arguments, **options)

    def error(self, message: str) -> NoReturn:
        """Raise UsageError."""
        raise UsageError(f"{message}\n{self._short_usage()}")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse; unknown words are reported by the parser of their command."""
        try:
            parsed, rest = super().parse_known_args(args, namespace)
        except UsageError:
            # A misspelt option makes a required one missing: report the misspelt one instead.
            self._check_spelling(sys.argv[1:] if args is None else args)
            raise
        if rest:
            self.error(f"{self._unknown(rest)}")
        return parsed, rest

    def _check_spelling(self, words: Sequence[str]) -> None:
        """Raise UsageError for a misspelt option; the parser of a command checks the options after it."""
        if self._subparsers is not None:
            words = list(itertools.takewhile(lambda word: word.startswith("-"), words))
        for word in itertools.takewhile(lambda word: word != "--", words):
            name = word.partition("=")[0]
            known = any(option.startswith(name) for option in self._options())
            if name.startswith("--") and not known and (suggestion := _suggestion(name, self._options())):
                self.error(f"unknown option {name}{suggestion}")

    def _unknown(self, rest: Sequence[str]) -> str:
        word = next(
            (argument for argument in rest if argument.startswith("-") and len(argument) > 1), rest[0]
        )
        if not word.startswith("-"):
            return f"unexpected argument {word!r}"
        name = word.partition("=")[0]
        return f"unknown option {name}{_suggestion(name, self._options())}"

    def _options(self) -> list[str]:
        return [option for action in self._actions for option in action.option_strings]

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        if isinstance(action.type, type) and action.choices is not None:
            self._check_value(action, arg_string)
        return super()._get_value(action, arg_string)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        choices = [str(choice) for choice in action.choices or ()]
        if not choices or str(value) in choices:
            return
        hint = _suggestion(str(value), choices) or f"; choose from {', '.join(choices)}"
        if isinstance(action, argparse._SubParsersAction):
            self.error(f"unknown {str(action.metavar).lower()} {str(value)!r}{hint}")
        raise argparse.ArgumentError(action, f"{str(value)!r} is not a choice{hint}")

    def _short_usage(self) -> str:
        words = ["[options]"] if self._options() != ["-h", "--help"] else []
        for action in self._actions:
            name = action.metavar or action.dest
            shown = name if isinstance(name, str) else " ".join(name)
            if action.option_strings and action.required:
                choices = "|".join(map(str, action.choices or ()))
                words.append(f"{action.option_strings[0]} {choices or shown}")
            elif isinstance(action, argparse._SubParsersAction) and name == "ACTION":
                words.append("|".join(map(str, action.choices)))
            elif not action.option_strings:
                words.append(f"[{shown}]" if action.nargs == "?" else shown)
        return f"usage: {' '.join([self.prog, *words])}   ({self.prog} --help shows more)"


def _suggestion(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""
