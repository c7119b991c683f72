"""The rules of a snapshot, each ruleset read when it is first asked for.

A command looks at one family as a rule; a fault in the other's rules is not its business.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from backends.model.stack import Stack, stack_of
from translate.errors import InputError
from translate.ir import Family, Ruleset
from translate.read import InputForm, IpSets, read_ipsets, read_ruleset, with_sets

__all__ = ["RuleFiles", "rule_files"]

_COMMANDS = {Family.IP: "iptables", Family.IP6: "ip6tables"}


class RuleFiles(Mapping[tuple[Stack, Family], Ruleset]):
    """Rulesets by stack and family. Getting one raises ParseError when its text is wrong."""

    def __init__(self, texts: Mapping[tuple[Stack, Family], tuple[str, bytes]], sets: _Sets) -> None:
        self._texts = dict(texts)
        self._sets = sets
        self._read: dict[tuple[Stack, Family], Ruleset] = {}

    def __getitem__(self, key: tuple[Stack, Family]) -> Ruleset:
        if key not in self._read:
            name, data = self._texts[key]
            ruleset = read_ruleset(data, name=name, family=key[1], form=InputForm.SAVE)
            given = self._sets.given() if any(ruleset.set_tests()) else None
            self._read[key] = ruleset if given is None else with_sets(ruleset, given)
        return self._read[key]

    def __iter__(self) -> Iterator[tuple[Stack, Family]]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


class _Sets:
    """The ipsets of the node, read when a rule asks one."""

    def __init__(self, name: str, data: bytes | None) -> None:
        self._name = name
        self._data = data

    def given(self) -> IpSets | None:
        return None if self._data is None else read_ipsets(self._data, name=self._name)


def rule_files(files: Mapping[str, bytes], meta: Mapping[str, object], *, name: str) -> RuleFiles:
    """Return the rules among a snapshot's files, whose ``name`` is for diagnostics.

    A file for both stacks together (``iptables-save``) is of the stack that ``meta.json`` says, else of
    the one that its own first comment says. Raises InputError when a stack would be given twice.
    A file without a table is as good as none: a family that is not used.
    """
    texts: dict[tuple[Stack, Family], tuple[str, bytes]] = {}
    for family, command in _COMMANDS.items():
        for stack in Stack:
            file = f"{command}-{stack.value}-save"
            if file in files:
                texts[stack, family] = (f"{name}/{file}", files[file])
        file = f"{command}-save"
        if file in files:
            stack = _said(meta, family) or stack_of(files[file])
            if (stack, family) in texts:
                raise InputError(f"{name}: both {file} and {command}-{stack.value}-save are of that stack")
            texts[stack, family] = (f"{name}/{file}", files[file])
    held = {key: text for key, text in texts.items() if _has_table(text[1])}
    return RuleFiles(held, _Sets(f"{name}/ipset-save", files.get("ipset-save")))


def _said(meta: Mapping[str, object], family: Family) -> Stack | None:
    stacks = meta.get("stacks")
    value = stacks.get(family.value) if isinstance(stacks, dict) else None
    return Stack(value) if value in tuple(Stack) else None


def _has_table(data: bytes) -> bool:
    return any(line.strip() and not line.startswith(b"#") for line in data.splitlines())
