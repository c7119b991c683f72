"""Programs of ``-m bpf`` as C: a function for each program, whose jumps go forward."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Final

from translate.bpf.chains.code import Condition, Declaration, Feature, Needs
from translate.bpf.layout.tables import RuntimePart
from translate.ir import BytecodeTest
from translate.ir.bytecode import (
    ANCILLARY,
    Ancillary,
    Class,
    Comparison,
    Instruction,
    Mode,
    Operation,
    bytecode_text,
)

__all__ = ["bytecode_condition"]

_OPERATORS: Final = {
    Operation.ADD: "+",
    Operation.SUB: "-",
    Operation.MUL: "*",
    Operation.DIV: "/",
    Operation.MOD: "%",
    Operation.OR: "|",
    Operation.AND: "&",
    Operation.XOR: "^",
    Operation.LSH: "<<",
    Operation.RSH: ">>",
}
_CONDITIONS: Final[dict[int, str]] = {
    Comparison.EQUAL: "==",
    Comparison.GREATER: ">",
    Comparison.AT_LEAST: ">=",
    Comparison.COMMON: "&",
}
_ANCILLARY: Final = {
    Ancillary.PROTOCOL: "ETH_TYPE",
    Ancillary.PACKET_TYPE: "p->type",
    Ancillary.MARK: "p->mark",
    Ancillary.CPU: "bpf_get_smp_processor_id()",
    Ancillary.XOR: "a ^ x",
}


def bytecode_condition(test: BytecodeTest) -> Condition:
    """Return the condition that a program takes a packet, with the function that decides it."""
    text = bytecode_text(test.program)
    name = f"bytecode_{sha256(text.encode()).hexdigest()[:16]}"
    lines = (
        f"/* {text} */",
        f"INLINE int {name}(struct __sk_buff *skb, struct pkt *p)",
        "{",
        f"\tu32 a = 0, x = 0{''.join(f', m{cell} = 0' for cell in _cells(test.program))};",
        "",
        *_body(test.program),
        "}",
        "",
    )
    frames = any(_ancillary(each) is Ancillary.PACKET_TYPE for each in test.program)
    needs = Needs(
        parts=frozenset({RuntimePart.BYTECODE}),
        features=frozenset({Feature.FRAMES} if frames else ()),
        declarations=(Declaration(lines),),
    )
    return Condition(f"{name}(skb, p)", needs)


def _cells(program: Sequence[Instruction]) -> list[int]:
    """Return the cells of memory that a program writes."""
    return sorted({each.number for each in program if each.kind in (Class.ST, Class.STX)})


def _ancillary(instruction: Instruction) -> Ancillary | None:
    loads = instruction.kind is Class.LD and instruction.mode == Mode.ABS
    return Ancillary(instruction.number - ANCILLARY) if loads and instruction.number >= ANCILLARY else None


def _body(program: Sequence[Instruction]) -> Iterator[str]:
    """Yield the lines of the instructions that can be reached, with labels where jumps lead to."""
    reached, labels = {0}, set[int]()
    for place, instruction in enumerate(program):
        if place not in reached:
            continue
        if place in labels:
            yield f"at_{place}:"
        match instruction.kind:
            case Class.RET:
                result = "a != 0" if instruction.code & 0x10 else str(int(instruction.number != 0))
                yield f"\treturn {result};"
            case Class.JMP:
                ways = _ways(instruction, place)
                reached |= ways
                yield from _jump(instruction, place, labels)
            case _:
                reached.add(place + 1)
                yield from (f"\t{line}" for line in _statement(instruction))


def _ways(instruction: Instruction, place: int) -> set[int]:
    if not instruction.operation:
        return {place + 1 + instruction.number}
    return {place + 1 + instruction.yes, place + 1 + instruction.no}


def _jump(instruction: Instruction, place: int, labels: set[int]) -> Iterator[str]:
    """Yield the lines of a jump, and add the places that it leads to."""
    if not instruction.operation:
        labels.add(place + 1 + instruction.number)
        yield f"\tgoto at_{place + 1 + instruction.number};"
        return
    yes, no = place + 1 + instruction.yes, place + 1 + instruction.no
    if yes == no:
        labels.add(yes)
        yield f"\tgoto at_{yes};"
        return
    operand = "x" if instruction.takes_x else f"{instruction.number:#x}"
    labels |= {yes, no}
    yield f"\tif (a {_CONDITIONS[instruction.operation]} {operand})"
    yield f"\t\tgoto at_{yes};"
    yield f"\tgoto at_{no};"


def _statement(instruction: Instruction) -> Iterator[str]:
    """Yield the lines of an instruction after which the next one follows."""
    number = instruction.number
    match instruction.kind:
        case Class.LD | Class.LDX:
            yield from _load(instruction, "a" if instruction.kind is Class.LD else "x")
        case Class.ST:
            yield f"m{number} = a;"
        case Class.STX:
            yield f"m{number} = x;"
        case Class.ALU if instruction.operation == Operation.NEG:
            yield "a = -a;"
        case Class.ALU:
            operation = Operation(instruction.operation)
            operand = "x" if instruction.takes_x else f"{number:#x}"
            if instruction.takes_x and operation in (Operation.DIV, Operation.MOD):
                yield "if (!x)"
                yield "\treturn 0;"
            if instruction.takes_x and operation in (Operation.LSH, Operation.RSH):
                operand = "(x & 31)"
            yield f"a {_OPERATORS[operation]}= {operand};"
        case _:
            yield "a = x;" if instruction.code & 0x80 else "x = a;"


def _load(instruction: Instruction, to: str) -> Iterator[str]:
    number = instruction.number
    what = _ancillary(instruction)
    if what is not None:
        yield f"a = {_ANCILLARY[what]};"
        return
    match instruction.mode:
        case Mode.IMM:
            yield f"{to} = {number:#x};"
        case Mode.MEM:
            yield f"{to} = m{number};"
        case Mode.LEN:
            yield f"{to} = p->length;"
        case mode:
            place = f"x + {number:#x}" if mode == Mode.IND else f"{number:#x}"
            yield f"if (!load_bytes(skb, p, {place}, {instruction.size}, &{to}))"
            yield "\treturn 0;"
            if mode == Mode.MSH:
                yield "x = (x & 15) << 2;"
