"""Programs of classic BPF: instructions, and their text form (``-m bpf --bytecode``).

The numbers are those of ``linux/bpf_common.h`` and ``linux/filter.h``, and the rules for a valid program
those of ``bpf_check_classic``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum
from typing import Final, NamedTuple

__all__ = [
    "ANCILLARY",
    "MOST_INSTRUCTIONS",
    "NETWORK",
    "Ancillary",
    "Class",
    "Comparison",
    "Instruction",
    "Mode",
    "Operation",
    "ProgramError",
    "bytecode_text",
    "read_bytecode",
]

MOST_INSTRUCTIONS: Final = 64
"""The greatest number of instructions in a rule (``XT_BPF_MAX_NUM_INSTR``)."""
_CELLS: Final = 16
"""The number of words of memory (``BPF_MEMWORDS``)."""
_WORD_BITS: Final = 32

ANCILLARY: Final = 0xFFFFF000
"""Loads from here on are not of the packet's bytes (``SKF_AD_OFF``)."""
NETWORK: Final = 0xFFF00000
"""Loads from here on are at an offset from the IP header (``SKF_NET_OFF``), where the bytes are linear."""


class Class(IntEnum):
    """The lowest three bits of a code."""

    LD = 0
    LDX = 1
    ST = 2
    STX = 3
    ALU = 4
    JMP = 5
    RET = 6
    MISC = 7


class Mode(IntEnum):
    """The ways in which an instruction loads."""

    IMM = 0x00
    ABS = 0x20
    IND = 0x40
    MEM = 0x60
    LEN = 0x80
    MSH = 0xA0


class Operation(IntEnum):
    """The operations of ALU."""

    ADD = 0x00
    SUB = 0x10
    MUL = 0x20
    DIV = 0x30
    OR = 0x40
    AND = 0x50
    LSH = 0x60
    RSH = 0x70
    NEG = 0x80
    MOD = 0x90
    XOR = 0xA0


class Comparison(IntEnum):
    """The condition of a jump; ``COMMON``: both numbers have a bit in common."""

    EQUAL = 0x10
    GREATER = 0x20
    AT_LEAST = 0x30
    COMMON = 0x40


class Ancillary(IntEnum):
    """The modelled values that loads from :data:`ANCILLARY` on read; ``XOR`` computes ``A ^= X``."""

    PROTOCOL = 0
    PACKET_TYPE = 4
    MARK = 20
    CPU = 36
    XOR = 40


_OTHERS: Final = {
    8: "index of the interface",
    12: "attributes of netlink",
    16: "attributes of netlink",
    24: "queue of the network card",
    28: "type of the interface",
    32: "hash of the network card",
    44: "VLAN",
    48: "VLAN",
    52: "offset of the payload",
    56: "random numbers",
    60: "VLAN",
}
"""Other ancillary values of the kernel, which are not modelled."""
_LINK: Final = 0xFFE00000
"""Loads from here on are at an offset from the link header (``SKF_LL_OFF``)."""
_LINEAR: Final = 20
"""The number of bytes that are always linear: the shortest IP header."""
_SOURCE_X: Final = 0x08
_RETURN_A: Final = 0x10
_TXA: Final = 0x80
_SIZES: Final = {0x00: 4, 0x08: 2, 0x10: 1}


class Instruction(NamedTuple):
    """An instruction (``struct sock_filter``); a jump skips ``yes`` or ``no`` of the next instructions."""

    code: int
    yes: int
    no: int
    number: int

    @property
    def kind(self) -> Class:
        """The class of the instruction."""
        return Class(self.code & 7)

    @property
    def mode(self) -> int:
        """The mode of a load."""
        return self.code & 0xE0

    @property
    def size(self) -> int:
        """The bytes of a load."""
        return _SIZES[self.code & 0x18]

    @property
    def operation(self) -> int:
        """The operation of ALU, or the condition of a jump."""
        return self.code & 0xF0

    @property
    def takes_x(self) -> bool:
        """True if the second operand is X."""
        return bool(self.code & _SOURCE_X)


class ProgramError(ValueError):
    """A program that iptables or the kernel does not take; ``unknown``: only nfparity does not."""

    def __init__(self, text: str, *, unknown: bool = False) -> None:
        self.unknown = unknown
        super().__init__(text)


def bytecode_text(program: Sequence[Instruction]) -> str:
    """Return a program as iptables-save prints it."""
    return ",".join((str(len(program)), *(" ".join(map(str, each)) for each in program)))


_NUMBER: Final = r"\s*+([+-]?\d++)"
_LENGTH: Final = re.compile(_NUMBER + ",", re.ASCII)
_INSTRUCTION: Final = re.compile(_NUMBER * 4, re.ASCII)
_WIDTHS: Final = (0xFFFF, 0xFF, 0xFF, 0xFFFFFFFF)
_LONGEST: Final = (1 << 64) - 1


def read_bytecode(text: str) -> tuple[Instruction, ...]:
    """Return the program of ``--bytecode`` (``bpf_parse_string``). Raises ProgramError."""
    begin = _LENGTH.match(text)
    if begin is None:
        raise ProgramError("a program begins with its number of instructions and a comma")
    length = _number(begin[1], _WIDTHS[0])
    if not 0 < length <= MOST_INSTRUCTIONS:
        raise ProgramError(f"a program has 1 to {MOST_INSTRUCTIONS} instructions")
    program = []
    words = text.split(",")[1:]
    if not words[-1]:
        words.pop()
    for place, word in enumerate(words):
        match = _INSTRUCTION.match(word)
        if match is None:
            raise ProgramError(f"instruction {place} is not four numbers")
        program.append(Instruction(*map(_number, match.groups(), _WIDTHS)))
    if len(program) != length:
        raise ProgramError(f"the program has {len(program)} instructions, not {length}")
    for place, instruction in enumerate(program):
        _check(instruction, length - place - 1, f"instruction {place}")
    if program[-1].kind is not Class.RET:
        raise ProgramError("the last instruction does not return")
    _check_memory(program)
    return tuple(program)


def _number(text: str, most: int) -> int:
    """Return a number of a program as ``sscanf`` reads it: by ``strtoul``, and then cut to its width."""
    sign, digits = text[:1], text.lstrip("+-").lstrip("0") or "0"
    if len(digits) > len(str(_LONGEST)) or int(digits) > _LONGEST:
        return most
    return (-int(digits) if sign == "-" else int(digits)) & most


def _check(instruction: Instruction, behind: int, name: str) -> None:
    """Raise ProgramError for an instruction that the kernel does not take (``bpf_check_classic``)."""
    if instruction.code not in _ALLOWED:
        raise ProgramError(f"{name} has a code that classic BPF does not have")
    match instruction.kind:
        case Class.ALU if not instruction.takes_x and instruction.operation in (Operation.DIV, Operation.MOD):
            if not instruction.number:
                raise ProgramError(f"{name} divides by zero")
        case Class.ALU if not instruction.takes_x and instruction.operation in (Operation.LSH, Operation.RSH):
            if instruction.number >= _WORD_BITS:
                raise ProgramError(f"{name} shifts by more than 31 bits")
        case Class.ST | Class.STX:
            _check_cell(instruction, name)
        case Class.LD | Class.LDX if instruction.mode == Mode.MEM:
            _check_cell(instruction, name)
        case Class.JMP:
            ways = (instruction.number,) if not instruction.operation else (instruction.yes, instruction.no)
            if max(ways) >= behind:
                raise ProgramError(f"{name} jumps behind the end")
        case Class.LD if instruction.mode == Mode.ABS:
            _check_place(instruction, name)
        case Class.LDX if instruction.mode == Mode.MSH and instruction.number < ANCILLARY:
            _check_place(instruction, name)
        case _:
            pass


def _check_cell(instruction: Instruction, name: str) -> None:
    if instruction.number >= _CELLS:
        raise ProgramError(f"{name} uses a cell of memory beyond the last")


def _check_place(instruction: Instruction, name: str) -> None:
    number = instruction.number
    if number >= ANCILLARY:
        what = number - ANCILLARY
        if what in _OTHERS:
            raise ProgramError(f"that reads the {_OTHERS[what]}", unknown=True)
        if what not in tuple(Ancillary):
            raise ProgramError(f"{name} loads what the kernel does not have")
    elif number >= NETWORK and number - NETWORK + instruction.size > _LINEAR:
        raise ProgramError("that reads bytes that may not be linear", unknown=True)
    elif _LINK <= number < NETWORK:
        raise ProgramError("that reads the link header", unknown=True)


def _check_memory(program: Sequence[Instruction]) -> None:
    """Raise ProgramError if a cell may be read before it is written (``check_load_and_stores``)."""
    every = (1 << _CELLS) - 1
    written, masks = 0, [every] * (len(program) + 1)
    for place, instruction in enumerate(program):
        written &= masks[place]
        match instruction.kind:
            case Class.ST | Class.STX:
                written |= 1 << instruction.number
            case Class.LD | Class.LDX if instruction.mode == Mode.MEM:
                if not written >> instruction.number & 1:
                    raise ProgramError(f"instruction {place} reads memory that is not written")
            case Class.JMP:
                ways = (
                    (instruction.number,) if not instruction.operation else (instruction.yes, instruction.no)
                )
                for skipped in ways:
                    masks[place + 1 + skipped] &= written
                written = every
            case _:
                pass


_ALLOWED: Final = frozenset(
    {
        *(Class.LD | size | mode for size in _SIZES for mode in (Mode.ABS, Mode.IND)),
        *(Class.LD | mode for mode in (Mode.IMM, Mode.MEM, Mode.LEN)),
        *(Class.LDX | mode for mode in (Mode.IMM, Mode.MEM, Mode.LEN)),
        Class.LDX | 0x10 | Mode.MSH,
        *(Class.ST, Class.STX),
        *(Class.ALU | operation | source for operation in Operation for source in (0, _SOURCE_X)),
        Class.JMP,
        *(Class.JMP | condition | source for condition in Comparison for source in (0, _SOURCE_X)),
        *(Class.RET, Class.RET | _RETURN_A),
        *(Class.MISC, Class.MISC | _TXA),
    }
) - {Class.ALU | Operation.NEG | _SOURCE_X}
"""The codes of instructions (``chk_code_allowed``)."""
