"""Shortens the log of a compiler or verifier that refuses a program to the lines that explain it.

A verifier's log has a line for every instruction on its path, often thousands. The reason is at the end,
and somewhere above it the line of C that the instruction comes from.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

__all__ = ["shorten"]

_ERRORS_SHOWN: Final = 3
_LINES_SHOWN: Final = 3

_COMPILER: Final = re.compile(r"^\S+:\d+:\d+: (?:fatal )?error: ")
_INSTRUCTION: Final = re.compile(
    r"^\s*\d+: (?:\(|R\d|safe$)|^from \d+ to \d+|^(?:R\d+|fp\d*)\S*=|^processed \d+ insn|^\("
)
_SOURCE: Final = re.compile(r"^; (.*?\S)(?: @ \S+:\d+)?$")
_FUNCTION: Final = re.compile(r"Failed to load BPF program b?'?(\w+)'?: (.*)")
_HELPER: Final = re.compile(
    r"(?:unknown func|invalid func|program of this type cannot use helper|unknown kernel helper) (\w+)#(\d+)"
)
_UNLOADED: Final = re.compile(r"^bpf: Failed to load program: (.*)$", re.MULTILINE)
_TOO_LARGE: Final = re.compile(r"^BPF program is too large\..*$", re.MULTILINE)

_HELPERS: Final = {
    10: "bpf_l3_csum_replace",
    11: "bpf_l4_csum_replace",
    23: "bpf_redirect",
    28: "bpf_csum_diff",
    38: "bpf_skb_change_tail",
    69: "bpf_fib_lookup",
    93: "bpf_spin_lock",
    94: "bpf_spin_unlock",
    135: "bpf_csum_level",
    152: "bpf_redirect_neigh",
    160: "bpf_ktime_get_coarse_ns",
}
"""The helpers that the runtime calls (``enum bpf_func_id``), because a kernel cannot name missing ones."""


def shorten(error: str, log: str) -> str:
    """Return a line with the reason, followed by the lines that show the place."""
    lines = log.splitlines()
    compiler = [at for at, line in enumerate(lines) if _COMPILER.match(line)]
    if compiler:
        shown = [line for at in compiler[:_ERRORS_SHOWN] for line in lines[at : at + 2]]
        more = len(compiler) - _ERRORS_SHOWN
        return "\n".join(("the compiler refuses it", *shown, *((f"and {more} more",) if more > 0 else ())))
    function, reason = _refused(error)
    where = f"{function}: " if function else ""
    helper = _HELPER.search(log)
    if helper is not None:
        name = _HELPERS.get(int(helper[2]), helper[1]) if helper[1] == "unknown" else helper[1]
        message = f"{where}this kernel has no helper {name} (number {helper[2]}) for tc programs"
        return "\n".join((message, *_source(lines)))
    large = _TOO_LARGE.search(log)
    if large is not None:
        return f"{where}the verifier gives up: {large[0]}"
    reasons = _reasons(lines)
    if reasons:
        return "\n".join((f"{where}the verifier refuses it: {reasons[0]}", *reasons[1:], *_source(lines)))
    unloaded = _UNLOADED.search(log)
    if unloaded is not None:
        reason = unloaded[1]
    return f"{where}{reason}"


def _refused(error: str) -> tuple[str, str]:
    match = _FUNCTION.search(error)
    return (match[1], match[2]) if match is not None else ("", error)


def _reasons(lines: Sequence[str]) -> list[str]:
    """Return the lines after the last instruction, which explain why it is refused."""
    reasons: list[str] = []
    has_instruction = False
    for line in reversed(lines):
        if not line.strip() or line.startswith("processed "):
            continue
        if _INSTRUCTION.match(line) or _SOURCE.match(line):
            has_instruction = True
            break
        reasons.append(line.strip())
    return reasons[::-1][:_LINES_SHOWN] if has_instruction else []


def _source(lines: Sequence[str]) -> list[str]:
    """Return the last line of C in the log."""
    for line in reversed(lines):
        match = _SOURCE.match(line)
        if match is not None and not match[1].startswith("@"):
            return [f"    {match[1]}"]
    return []
