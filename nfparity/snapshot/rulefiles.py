"""The rules of a snapshot; each ruleset is read on first use.

Most commands need only one family, and should not fail because of the other family's rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from backends.model.variant import Variant, variant_of
from translate.errors import InputError
from translate.ir import Family, Rules
from translate.read import InputForm, IpSets, read_ipsets, with_sets

__all__ = ["RuleFiles", "rule_files"]

_COMMANDS = {Family.IP: "iptables", Family.IP6: "ip6tables"}


class RuleFiles(Mapping[tuple[Variant, Family], Rules]):
    """Rules by variant and family. Getting an item raises ParseError if its text is invalid."""

    def __init__(self, texts: Mapping[tuple[Variant, Family], tuple[str, bytes]], sets: _Sets) -> None:
        self._texts = dict(texts)
        self._sets = sets
        self._read: dict[tuple[Variant, Family], Rules] = {}

    def __getitem__(self, key: tuple[Variant, Family]) -> Rules:
        if key not in self._read:
            from translate.condense import read_large

            name, data = self._texts[key]
            rules = read_large(data, name=name, family=key[1], form=InputForm.SAVE)
            ipsets = self._sets.ipsets() if any(rules.sample.set_uses()) else None
            self._read[key] = rules if ipsets is None else with_sets(rules.whole(), ipsets)
        return self._read[key]

    def __iter__(self) -> Iterator[tuple[Variant, Family]]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


class _Sets:
    """The ipsets of the node, read when a rule uses one."""

    def __init__(self, name: str, data: bytes | None) -> None:
        self._name = name
        self._data = data

    def ipsets(self) -> IpSets | None:
        return None if self._data is None else read_ipsets(self._data, name=self._name)


def rule_files(files: Mapping[str, bytes], meta: Mapping[str, object], *, name: str) -> RuleFiles:
    """Return the rules among a snapshot's files. ``name`` is that of the snapshot, for messages.

    The variant of a plain ``iptables-save`` file is given by ``meta.json`` or by the first comment of the
    file. Raises InputError if a variant is given twice. A file without a table is ignored, because the family
    is not used.
    """
    texts: dict[tuple[Variant, Family], tuple[str, bytes]] = {}
    for family, command in _COMMANDS.items():
        for variant in Variant:
            file = f"{command}-{variant.value}-save"
            if file in files:
                texts[variant, family] = (f"{name}/{file}", files[file])
        file = f"{command}-save"
        if file in files:
            variant = _recorded_variant(meta, family) or variant_of(files[file])
            if (variant, family) in texts:
                raise InputError(
                    f"{name}: both {file} and {command}-{variant.value}-save contain rules of this variant"
                )
            texts[variant, family] = (f"{name}/{file}", files[file])
    used = {key: text for key, text in texts.items() if _has_table(text[1])}
    return RuleFiles(used, _Sets(f"{name}/ipset-save", files.get("ipset-save")))


def _recorded_variant(meta: Mapping[str, object], family: Family) -> Variant | None:
    variants = meta.get("stacks")
    value = variants.get(family.value) if isinstance(variants, dict) else None
    return Variant(value) if value in tuple(Variant) else None


def _has_table(data: bytes) -> bool:
    return any(line.strip() and not line.startswith(b"#") for line in data.splitlines())
