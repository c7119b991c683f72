"""Completion for zsh: one function per command, in the form of _arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nfparity.manual.commands import Command, Option

__all__ = ["zsh_completion"]


def zsh_completion(root: Command) -> str:
    """Return the file ``_nfparity``."""
    functions = "".join(part for command in root.walk() for part in _function(command))
    return f'#compdef nfparity\n{functions}{_name(root)} "$@"\n'


def _function(command: Command) -> Iterator[str]:
    yield f"{_name(command)}() {{\n"
    specifications = [_option(option) for option in command.options]
    if command.actions:
        yield "    local curcontext=$curcontext context state state_descr line\n    typeset -A opt_args\n"
        specifications += ["'1: :->command'", "'*:: :->rest'"]
        yield _arguments("-C", specifications)
        yield "    case $state in\n    command)\n        local -a commands=(\n"
        for action in command.actions:
            yield f"            {_word(f'{action.path[-1]}:{_colons(action.summary)}')}\n"
        yield "        )\n        _describe command commands ;;\n    rest)\n        case $words[1] in\n"
        for action in command.actions:
            yield f"        {action.path[-1]}) {_name(action)} ;;\n"
        yield "        esac ;;\n    esac\n"
    else:
        choices = " ".join(choice for argument in command.arguments for choice in argument.choices)
        specifications.append(f"'*: :({choices})'" if choices else "'*:file:_files'")
        yield _arguments("", specifications)
    yield "}\n"


def _arguments(flag: str, specifications: list[str]) -> str:
    lines = " \\\n        ".join(specifications)
    return f"    _arguments {flag}{' ' if flag else ''}\\\n        {lines}\n"


def _option(option: Option) -> str:
    """Return the option for _arguments, such as ``'*'{-o+,--output=}'[help]:FILE:_files'``."""
    text = re.sub(r"([\[\]\\])", r"\\\1", " ".join(option.help.split()))
    value = ""
    if option.value:
        values = f"({' '.join(option.choices)})" if option.choices else "_files"
        message = _colons(re.sub(r"[\[\]{}]", "", option.value))
        value = f":{message}:{values}"
    # Values are completed as files, although some are numbers or other names.
    tail = _word(f"[{text}]{value}")
    spellings = [f"{spelling}{_joint(spelling) if value else ''}" for spelling in option.spellings]
    names = spellings[0] if len(spellings) == 1 else f"{{{','.join(spellings)}}}"
    return f"'*'{names}{tail}"


def _joint(spelling: str) -> str:
    """Return the sign after an option whose value may be in the same word: ``--to=nft``, ``-O2``."""
    return "=" if spelling.startswith("--") else "+"


def _name(command: Command) -> str:
    return "_" + "_".join(command.path)


def _colons(text: str) -> str:
    return text.replace(":", "\\:")


def _word(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
