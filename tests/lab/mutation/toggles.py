"""Many faults in one tc program, each with a switch that can be changed while the program is loaded.

Compiling and verifying a program takes more than a hundred times as long as the packets that show a fault. So
a condition with faults becomes ``is_planted(1) ? … : is_planted(2) ? … : the condition``, and a statement
likewise. The map ``planted`` has the number of the active fault. With an empty map, no fault is active.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tests.lab.mutation.fault import Fault
from translate.bpf import U32, BpfOutput, SetContents, SetEntry

__all__ = ["can_switch", "switched", "turned"]

_CONDITION: Final = re.compile(r"^(\t*(?:\} else )?if \()(.*)(\)(?: \{)?)$")
_STATEMENT: Final = re.compile(r"^\t+(?:return\b|p->|bit |RUN|set_).*;$")
_AFTER: Final = "#define INLINE static __always_inline\n"
_SWITCH: Final = """\
BPF_TABLE("hash", u32, u32, planted, MAX_ENTRIES_OF_planted);
INLINE int is_planted(u32 fault) { return planted.lookup(&fault) != 0; }
"""


def can_switch(fault: Fault) -> bool:
    """Return whether the fault changes a condition or a statement, which a switch can guard.

    If the verifier refuses one fault, the other faults of the program cannot be loaded either. An example is
    an entry of a map that is used without a check whether it was found.
    """
    before, after = fault.place.text, fault.after
    if before.strip() == "if (e) {" and fault.operator == "lost-test":
        return False
    if match := _CONDITION.match(before):
        other = None if after is None else _CONDITION.match(after)
        return other is not None and (other[1], other[3]) == (match[1], match[3])
    return _STATEMENT.match(before) is not None


def switched(text: str, faults: Sequence[Fault]) -> str:
    """Return ``text`` with all faults, each behind a switch; the first switch has the number 1."""
    by_line: dict[int, list[tuple[int, Fault]]] = {}
    for number, fault in enumerate(faults, 1):
        by_line.setdefault(fault.place.line, []).append((number, fault))
    lines = text.split("\n")
    for at, here in by_line.items():
        lines[at] = _line(lines[at], here)
    result = "\n".join(lines)
    assert _AFTER in result
    return result.replace(_AFTER, _AFTER + _SWITCH, 1)


def _line(line: str, faults: Sequence[tuple[int, Fault]]) -> str:
    if match := _CONDITION.match(line):
        chosen = f"({match[2]})"
        for number, fault in reversed(faults):
            other = _CONDITION.match(fault.after or "")
            assert other is not None
            chosen = f"is_planted({number}) ? ({other[2]}) : {chosen}"
        return f"{match[1]}({chosen}) != 0{match[3]}"
    chosen = f"{{ {line.strip()} }}"
    for number, fault in reversed(faults):
        chosen = f"if (is_planted({number})) {{ {(fault.after or '').strip()} }} else {chosen}"
    return f"{{ {chosen} }}"


def turned(output: BpfOutput, number: int | None) -> BpfOutput:
    """Return a program of :func:`switched` text with this switch on, or with no switch on."""
    entries = () if number is None else (SetEntry(words=(number,), length=32, member=True),)
    planted = SetContents(name="planted", fields=("fault",), key=U32, entries=entries)
    return replace(output, sets=(*output.sets, planted))
