"""Reports of reduced faults, for the developers of the translator at fault."""

from __future__ import annotations

import platform
from collections.abc import Sequence

from backends.testbed.command import find_tool, run
from harness.diff.result import Difference
from harness.shrink.translator import PLACE, Translator
from translate.errors import MachineError
from translate.ir import Ruleset
from translate.write import write_save

__all__ = ["difference_report", "load_report"]

_RULES = "rules.txt"


def difference_report(ruleset: Ruleset, wanted: Difference, *, command: str, backend: object) -> str:
    """Return the report of a packet with another outcome than the rules give. ``command`` reproduces it."""
    return (
        f"# {wanted.backend} differs in {wanted.field}\n\n"
        f"{_versions(wanted.backend)}\n\n"
        f"{_rules(ruleset)}"
        f"{_translation(ruleset, backend)}"
        f"The packet: {wanted.step_text}\n\n"
        f"| | {wanted.field} |\n| --- | --- |\n"
        f"| expected | {_shown(wanted.expected)} |\n"
        f"| observed | {_shown(wanted.observed)} |\n\n"
        f"To reproduce it:\n\n```\n{command}\n```\n"
    )


def load_report(ruleset: Ruleset, message: str, *, backend: Translator) -> str:
    """Return the report of rules whose translation nft does not load."""
    return (
        f"# nft does not load the output of {backend.name}\n\n"
        f"{_versions(backend.name)}\n\n"
        f"{_rules(ruleset)}"
        f"{_translation(ruleset, backend)}"
        f"Expected: nft loads the output. Observed:\n\n```\n{message.strip()}\n```\n"
    )


def _rules(ruleset: Ruleset) -> str:
    return f"The rules, as `iptables-restore` reads them:\n\n```\n{write_save(ruleset)}```\n\n"


def _translation(ruleset: Ruleset, backend: object) -> str:
    """Return the script that translates and loads the rules, and its output.

    The result is empty for nfparity's own backends.
    """
    if not isinstance(backend, Translator):
        return ""
    words = " ".join(_RULES if word == PLACE else word for word in backend.words)
    try:
        output = backend.text(ruleset)
    except MachineError as e:
        output = f"{e}\n"
    script = f"cat > {_RULES} <<'END'\n{write_save(ruleset)}END\n{words} | tee rules.nft\n"
    script += "unshare -n nft -f rules.nft\n"
    return (
        f"A script that translates and loads them:\n\n```\n{script}```\n\n"
        f"The translation:\n\n```\n{output}```\n\n"
    )


def _shown(value: object) -> str:
    return "(nothing)" if value is None else str(value)


def _versions(backend: str) -> str:
    """Return the versions of the kernel and of the tools that translate and load the rules."""
    tools: Sequence[str] = ("nft",) if backend == "nftables" else (backend, "nft")
    lines = [version for tool in tools if (version := _version(tool))]
    return "; ".join((*dict.fromkeys(lines), f"Linux {platform.release()}"))


def _version(tool: str) -> str:
    if find_tool(tool) is None:
        return ""
    return run((tool, "--version")).stdout.strip()
