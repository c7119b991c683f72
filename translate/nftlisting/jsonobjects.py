"""Text for named objects whose JSON nft 1.0.6 prints but does not read back unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from translate.nftlisting.commands import GivenSet
from translate.nftlisting.jsonsets import flags_of

__all__ = ["object_text"]


def object_text(kind: str, where: GivenSet, entry: Mapping[str, Any]) -> str | None:
    """Return the command that adds a named object; None if its JSON can be used."""
    match kind:
        case "synproxy":
            flags = " ".join(flags_of(entry))
            parts = [f"mss {entry.get('mss', 0)}", f"wscale {entry.get('wscale', 0)}", flags]
        case "ct expectation":
            parts = [f"{key} {entry[key]}" for key in ("protocol", "dport") if key in entry]
            parts += [f"timeout {entry[key]}ms" for key in ("timeout",) if key in entry]
            parts += [f"{key} {entry[key]}" for key in ("size", "l3proto") if key in entry]
        case "ct timeout":
            parts = [f"{key} {entry[key]}" for key in ("protocol", "l3proto") if key in entry]
            policy = ", ".join(f"{state} : {seconds}" for state, seconds in entry.get("policy", {}).items())
            parts += [f"policy = {{ {policy} }}"] if policy else []
        case _:
            return None
    return f"add {kind} {where} {{ {'; '.join(part for part in parts if part)}; }}"
