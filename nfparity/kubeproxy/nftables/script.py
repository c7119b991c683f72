"""Commands of nft for one table, collected by kind and printed in an order that nft can load."""

from __future__ import annotations

from translate.dataclass import dataclass, field

__all__ = ["Script"]


@dataclass(slots=True)
class Script:
    """An incomplete table. ``family`` is ``ip`` or ``ip6``; names are kube-proxy's own."""

    family: str
    table: str = "kube-proxy"
    _chains: dict[str, str] = field(default_factory=dict)
    _sets: list[str] = field(default_factory=list)
    _elements: dict[tuple[str, str], str] = field(default_factory=dict)
    _rules: list[str] = field(default_factory=list)

    def chain(self, name: str, options: str = "") -> None:
        """Declare a chain, once."""
        self._chains.setdefault(name, self._command("chain", name, f"{{ {options} ; }}" if options else ""))

    def declare(self, kind: str, name: str, options: str) -> None:
        """Declare a set or a map."""
        self._sets.append(self._command(kind, name, f"{{ {options} ; }}"))

    def element(self, container: str, key: str, value: str = "", comment: str = "") -> None:
        """Add an element; a later element with the same key replaces it, as in kube-proxy."""
        note = f' comment "{comment[:128]}"' if comment else ""
        verdict = f" : {value}" if value else ""
        command = self._command("element", container, f"{{ {key}{note}{verdict} }}")
        self._elements[container, key] = command

    def rule(self, chain: str, *words: str, comment: str = "") -> None:
        """Append a rule; empty words are left out."""
        note = f'comment "{comment}"' if comment else ""
        self._rules.append(self._command("rule", chain, " ".join(w for w in (*words, note) if w)))

    def text(self) -> str:
        """Return the commands: the table, chains, sets and maps, elements, rules."""
        head = f'add table {self.family} {self.table} {{ comment "rules for kube-proxy" ; }}'
        lines = (head, *self._chains.values(), *self._sets, *self._elements.values(), *self._rules)
        return "".join(f"{line}\n" for line in lines)

    def _command(self, kind: str, name: str, rest: str) -> str:
        return f"add {kind} {self.family} {self.table} {name} {rest}".rstrip()
