"""Completion for bash: commands, options, and the values of options that list them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from nfparity.manual.commands import Command

__all__ = ["bash_completion"]

_START: Final = """\
# Completion of nfparity for bash.
_nfparity() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=nfparity i
    for ((i = 1; i < COMP_CWORD; i++)); do
        case "$command ${COMP_WORDS[i]}" in
"""
_MIDDLE: Final = """\
            command="$command ${COMP_WORDS[i]}" ;;
        esac
    done
    COMPREPLY=()
    case "$command $before" in
"""
_OPTIONS: Final = """\
    esac
    case $command in
"""
_END: Final = """\
    esac
}
complete -o default -F _nfparity nfparity
"""


def bash_completion(root: Command) -> str:
    """Return the file. For words of which the values are not known, bash completes file names."""
    return "".join(_parts(root))


def _parts(root: Command) -> Iterator[str]:
    yield _START
    below = [command for command in root.walk() if len(command.path) > 1]
    yield f"        {' | '.join(_quoted(command) for command in below)})\n"
    yield _MIDDLE
    for command in root.walk():
        for option in command.options:
            if not option.value:
                continue
            spellings = "|".join(f'"{" ".join(command.path)} {spelling}"' for spelling in option.spellings)
            yield f"    {spellings})\n"
            if option.choices:
                yield f"        {_offer(option.choices)}\n"
            yield "        return ;;\n"
    yield _OPTIONS
    for command in root.walk():
        options = [spelling for option in command.options for spelling in option.spellings]
        words = [action.path[-1] for action in command.actions]
        words += [choice for argument in command.arguments for choice in argument.choices]
        yield f"    {_quoted(command)})\n"
        yield f"        if [[ $word == -* ]]; then {_offer(options)}\n"
        if words:
            yield f"        else {_offer(words)}\n"
        yield "        fi ;;\n"
    yield _END


def _offer(words: Sequence[str]) -> str:
    return f'mapfile -t COMPREPLY < <(compgen -W "{" ".join(words)}" -- "$word")'


def _quoted(command: Command) -> str:
    return f'"{" ".join(command.path)}"'
