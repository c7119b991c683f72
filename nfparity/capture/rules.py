"""The rules of both iptables variants and both families.

A node can have rules of ``iptables-legacy`` (x_tables) and of ``iptables-nft`` (nf_tables) at the same time;
packets pass both. The version of a plain ``iptables-save`` shows which variant it is.
"""

from __future__ import annotations

import re
from pathlib import Path

from nfparity.capture.tools import Notes, Tool, Tools

__all__ = ["COMMANDS", "RULE", "STACKS", "Rules", "holds_rules"]

COMMANDS = {"ip": "iptables", "ip6": "ip6tables"}
STACKS = ("legacy", "nft")
_NAMES = {"ip": "ip_tables_names", "ip6": "ip6_tables_names"}
RULE = re.compile(rb"^(?:\[\d+:\d+\] )?-A ", re.MULTILINE)
_POLICY = re.compile(rb"^:\S+ DROP\b", re.MULTILINE)
_INCOMPATIBLE = re.compile(rb"^# Table [`'](\S+)' is incompatible", re.MULTILINE)


def holds_rules(text: bytes) -> bool:
    """Return whether output of ``iptables-save`` contains a rule or a policy that drops."""
    return bool(RULE.search(text) or _POLICY.search(text))


class Rules:
    """The rules, read with the available tools.

    After :meth:`read`, ``files`` are the texts by file name in a snapshot, ``stacks`` is the variant with
    rules for each family (``legacy``, ``nft`` or ``both``), and ``unread`` is the number of the four
    combinations that could not be read.
    """

    def __init__(self, tools: Tools, notes: Notes, proc: Path) -> None:
        self.files: dict[str, bytes] = {}
        self.stacks: dict[str, str] = {}
        self.unread = 0
        self._tools = tools
        self._notes = notes
        self._proc = proc

    def read(self) -> None:
        """Read everything; add a note for each part that cannot be read."""
        for family, command in COMMANDS.items():
            texts: dict[str, bytes] = {}
            for stack in STACKS:
                text = self._read(family, stack)
                if text is None:
                    self.unread += 1
                elif text.strip():
                    texts[stack] = text
            filled = [stack for stack in texts if holds_rules(texts[stack])]
            if len(filled) > 1:
                self.stacks[family] = "both"
                self._notes.add(f"both {command}-legacy and {command}-nft have rules, and packets pass both")
                self.files.update({f"{command}-{stack}-save": texts[stack] for stack in filled})
            elif texts:
                stack = filled[0] if filled else list(texts)[-1]
                self.stacks[family] = stack
                self.files[f"{command}-save"] = texts[stack]

    def _read(self, family: str, stack: str) -> bytes | None:
        """Return the output of one variant's tool; None if it cannot be run."""
        tool = self._tool(COMMANDS[family], stack)
        if stack == "legacy":
            # iptables-legacy -L and -save -t TABLE create a missing table and load its modules: from then on
            # every packet passes its hooks, and the nat table enables conntrack. This file lists the existing
            # tables; without the file there is no x_tables.
            names = self._names(family)
            if names is None:
                return None
            if not names:
                return b""
            if tool is None:
                tables = ", ".join(names)
                self._notes.add(f"{COMMANDS[family]}-legacy has tables ({tables}), but no tool to read them")
                return None
        if tool is None:
            self._notes.add(f"{COMMANDS[family]}-{stack}-save is missing")
            return None
        # Without -t it reads the same file. The nft tools use netlink, for which the kernel may load
        # nf_tables; that alone creates no table and no hook.
        text = self._tools.read(tool, "-c")
        for match in _INCOMPATIBLE.finditer(text or b""):
            table = match.group(1).decode("ascii", "replace")
            self._notes.add(f"{tool.name} cannot show table {table}, written by another tool; see nft.json")
        return text

    def _names(self, family: str) -> list[str] | None:
        try:
            return (self._proc / "net" / _NAMES[family]).read_text().split()
        except FileNotFoundError:
            return []
        except OSError as e:
            self._notes.add(f"/proc/net/{_NAMES[family]} cannot be read: {e.strerror}")
            return None

    def _tool(self, command: str, stack: str) -> Tool | None:
        candidates = ((f"{command}-{stack}-save",), (f"xtables-{stack}-multi", f"{command}-save"))
        for words in candidates:
            tool = self._tools.find(*words)
            if tool is not None:
                return tool
        plain = self._tools.find(f"{command}-save")
        # Versions before 1.8 support only one variant, and do not print which.
        if plain is not None and ("nf_tables" in self._tools.versions[plain.name]) == (stack == "nft"):
            return plain
        return None
