"""A given nftables ruleset in loadable order, with the facts that are needed before loading."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

from translate.collector import collector_paused
from translate.dataclass import dataclass, replace
from translate.errors import Diagnostic, ParseError
from translate.ir import Family, Origin
from translate.nftlisting import jsonform
from translate.nftlisting import text as textform
from translate.nftlisting.commands import Command, Form, GivenSet

__all__ = ["Listing", "Script", "read_listing"]

_AT_ONCE: Final = 10_000
"""The most commands of one transaction."""
_DEFINES: Final = re.compile(r"(?:re|un)?define\s")


@dataclass(frozen=True, slots=True)
class Script:
    """Commands of one form, which libnftables runs in one call.

    ``origins`` has one entry for each line of text, and for each command of JSON; ``titles`` has the names of
    the added objects.
    """

    form: Form
    text: str
    origins: tuple[Origin, ...]
    commands: tuple[str, ...]
    titles: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A ruleset in an order in which it loads.

    ``filled`` are the sets that packets fill; their listed elements are not loaded. ``families`` are the
    families of its tables. ``devices`` are those that must exist, each with the first place that names it.
    ``doubtful`` are chains like those of iptables-nft, which nft may list differently from their effect in
    the kernel. ``counting`` are rules that depend on earlier packets or on time.
    """

    source: str
    form: Form
    commands: tuple[Command, ...]
    families: tuple[str, ...]
    filled: tuple[GivenSet, ...]
    devices: tuple[tuple[str, Origin], ...]
    doubtful: tuple[Origin, ...]
    counting: tuple[Origin, ...]

    @property
    def scripts(self) -> tuple[Script, ...]:
        """The commands that load the ruleset, in order, into a namespace without these tables.

        Each script is a transaction. The more commands it has, the longer the kernel takes for each set
        without a name, which rules have (``__nft_set_trans_bind``).
        """
        return tuple(
            _script(form, part)
            for form, run in groupby(self.commands, lambda c: c.form)
            for part in _transactions(tuple(run))
        )

    def reaches(self, family: Family) -> bool:
        """Return whether a table sees packets of ``family``."""
        return not {family.value, "inet", "netdev"}.isdisjoint(self.families)

    @property
    def flush(self) -> str:
        """Commands that empty the sets that packets fill."""
        return "".join(f"flush set {name}\n" for name in self.filled)


@collector_paused()
def read_listing(text: str, *, name: str, without: Container[tuple[str, str]] = ()) -> Listing:
    """Read the output of ``nft list ruleset`` or ``nft -j list ruleset``, or input for ``nft -f``.

    ``without`` are tables of a listing to leave out, by family and name. Raises ParseError with the place and
    the reason of everything that cannot be loaded.
    """
    begin = text.lstrip("\ufeff \t\r\n")
    if not begin:
        hint = "nft prints nothing if there are no tables, or if it is not run as root"
        raise ParseError((Diagnostic(Origin(name), "no ruleset in this text", hint),))
    form = Form.JSON if begin.startswith("{") else Form.TEXT
    read = jsonform.groups if form is Form.JSON else textform.groups
    commands: list[Command] = []
    for movable, group in read(text, name, without):
        commands += sorted(group, key=lambda c: c.kind) if movable else group
    filled = tuple(dict.fromkeys(fill for command in commands for fill in command.fills))
    stateless = tuple(_without_state(commands, set(filled)))
    devices: dict[str, Origin] = {}
    for command in stateless:
        for device in command.devices:
            devices.setdefault(device, command.origin)
    return Listing(
        source=name,
        form=form,
        commands=stateless,
        families=tuple(dict.fromkeys(command.family for command in stateless if command.family)),
        filled=filled,
        devices=tuple(devices.items()),
        doubtful=tuple(command.origin for command in stateless if command.foreign),
        counting=tuple(command.origin for command in stateless if command.counting),
    )


def _transactions(commands: tuple[Command, ...]) -> Iterator[tuple[Command, ...]]:
    """Yield the commands in parts; all at once if they define variables, which end with a transaction."""
    most = len(commands) if any(_DEFINES.match(command.text) for command in commands) else _AT_ONCE
    for i in range(0, len(commands), most):
        yield commands[i : i + most]


def _without_state(commands: Iterable[Command], filled: set[GivenSet]) -> Iterator[Command]:
    """Return the commands without the elements of sets that packets fill."""
    for command in commands:
        if command.where not in filled:
            yield command
        elif command.bare is not None:
            yield replace(command, text=command.bare)


def _script(form: Form, commands: Sequence[Command]) -> Script:
    texts = tuple(command.text for command in commands)
    titles = tuple(command.title for command in commands)
    if form is Form.JSON:
        joined = ",\n".join(texts)
        origins = tuple(command.origin for command in commands)
        return Script(form, f'{{"nftables": [\n{joined}\n]}}\n', origins, texts, titles)
    origins = tuple(c.origin for c in commands for _ in range(c.text.count("\n") + 1))
    return Script(form, "".join(f"{text}\n" for text in texts), origins, texts, titles)
