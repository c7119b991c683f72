"""Completion for fish: one line per command, option and action."""

from __future__ import annotations

from collections.abc import Iterator

from nfparity.manual.commands import Command, Option

__all__ = ["fish_completion"]


def fish_completion(root: Command) -> str:
    """Return the file ``nfparity.fish``."""
    return "# Completion of nfparity for fish.\n" + "".join(
        f"complete -c nfparity {line}\n" for command in root.walk() for line in _lines(command)
    )


def _lines(command: Command) -> Iterator[str]:
    here = f"-n {_word(_condition(command))}"
    for action in command.actions:
        yield f"{here} -f -a {action.path[-1]} -d {_word(action.summary)}"
    for argument in command.arguments:
        if argument.choices:
            yield f"{here} -f -a {_word(' '.join(argument.choices))}"
    for option in command.options:
        yield f"{here} {_option(option)}"


def _condition(command: Command) -> str:
    """Return the test that the words so far select this command and none of its actions."""
    tests = [f"__fish_seen_subcommand_from {word}" for word in command.path[1:]]
    if command.actions:
        actions = " ".join(action.path[-1] for action in command.actions)
        tests.append(f"not __fish_seen_subcommand_from {actions}")
    return "; and ".join(tests)


def _option(option: Option) -> str:
    words = []
    for spelling in option.spellings:
        if spelling.startswith("--"):
            words.append(f"-l {spelling[2:]}")
        else:
            words.append(f"-s {spelling[1:]}" if len(spelling) == 2 else f"-o {spelling[1:]}")
    if option.choices:
        words.append(f"-x -a {_word(' '.join(option.choices))}")
    elif option.value:
        words.append("-r")
    return f"{' '.join(words)} -d {_word(' '.join(option.help.split()))}"


def _word(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
