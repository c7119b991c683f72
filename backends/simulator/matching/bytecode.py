"""``-m bpf --bytecode``: an interpreter of classic BPF, in which some bits of a number may be unknown.

Where such bits decide, both ways are followed (``___bpf_prog_run`` knows all of them). A result that differs
between the ways leaves the packet's fate open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from backends.simulator.conntrack.skb import Skb
from backends.simulator.matching.contents import Contents, contents
from backends.simulator.matching.undecided import Undecided
from translate.dataclass import dataclass
from translate.ir import BytecodeTest, Family
from translate.ir.bytecode import (
    ANCILLARY,
    NETWORK,
    Ancillary,
    Class,
    Comparison,
    Instruction,
    Mode,
    Operation,
)

__all__ = ["takes"]

_ALL: Final = 0xFFFFFFFF
_NEGATIVE: Final = 0x80000000
_LINK: Final = 0xFFE00000
_SHIFTS: Final = 31
_MOST_STEPS: Final = 4096
"""The limit of instructions for one packet, on all ways; a program without unknown bits takes 64 at most."""
_TYPES: Final = {Family.IP: 0x0800, Family.IP6: 0x86DD}


class _Number(NamedTuple):
    """A number: ``value`` has 0 for each bit that is set in ``unknown``."""

    value: int
    unknown: int = 0

    @property
    def most(self) -> int:
        """The greatest possible number."""
        return self.value | self.unknown


_ZERO: Final = _Number(0)
_ANY: Final = _Number(0, _ALL)


@dataclass(frozen=True, slots=True)
class _State:
    """A place in the program, and what the machine holds there."""

    place: int = 0
    a: _Number = _ZERO
    x: _Number = _ZERO
    memory: tuple[_Number, ...] = (_ZERO,) * 16


def takes(test: BytecodeTest, skb: Skb) -> bool:
    """Return whether the program returns another number than 0. Raises Undecided if unknown bits decide."""
    packet = contents(skb)
    pending, results, steps = [_State()], set[bool](), 0
    while pending and len(results) < 2:
        state = pending.pop()
        steps += 1
        if steps > _MOST_STEPS:
            raise Undecided("a program of -m bpf reads many bytes that the kernel chooses")
        for after in _step(test.program[state.place], state, packet, skb):
            if isinstance(after, bool):
                results.add(after)
            else:
                pending.append(after)
    if len(results) > 1:
        raise Undecided("a program of -m bpf reads bytes that the kernel chooses")
    return results.pop()


def _step(instruction: Instruction, state: _State, packet: Contents, skb: Skb) -> Iterator[_State | bool]:
    """Yield the states after an instruction, or results."""
    code, _, _, number = instruction
    place, a, x, memory = state.place + 1, state.a, state.x, state.memory
    match instruction.kind:
        case Class.RET:
            result = a if code & 0x10 else _Number(number)
            if result.value or result.unknown:
                yield True
            if not result.value:
                yield False
        case Class.LD | Class.LDX:
            for loaded in _loaded(instruction, state, packet, skb):
                if loaded is None:
                    yield False
                elif instruction.kind is Class.LD:
                    yield _State(place, loaded, x, memory)
                else:
                    yield _State(place, a, loaded, memory)
        case Class.ST | Class.STX:
            stored = a if instruction.kind is Class.ST else x
            yield _State(place, a, x, (*memory[:number], stored, *memory[number + 1 :]))
        case Class.ALU:
            operand = x if instruction.takes_x else _Number(number)
            if instruction.operation in (Operation.DIV, Operation.MOD) and not operand.value:
                yield False
                if not operand.unknown:
                    return
            yield _State(place, _computed(instruction.operation, a, operand), x, memory)
        case Class.JMP if not instruction.operation:
            yield _State(place + number, a, x, memory)
        case Class.JMP:
            operand = x if instruction.takes_x else _Number(number)
            decided = _compared(instruction.operation, a, operand)
            if decided is not False:
                yield _State(place + instruction.yes, a, x, memory)
            if decided is not True:
                yield _State(place + instruction.no, a, x, memory)
        case Class.MISC if code & 0x80:
            yield _State(place, x, x, memory)
        case Class.MISC:
            yield _State(place, a, a, memory)


def _loaded(
    instruction: Instruction, state: _State, packet: Contents, skb: Skb
) -> tuple[_Number | None, ...]:
    """Return the possible numbers of a load; None ends the program with 0."""
    number = instruction.number
    match instruction.mode:
        case Mode.IMM:
            return (_Number(number),)
        case Mode.MEM:
            return (state.memory[number],)
        case Mode.LEN:
            return (_Number(len(packet.data)),)
        case Mode.MSH:
            headers = _read(number, 1, packet)
            return tuple(
                each and _Number((each.value & 15) << 2, (each.unknown & 15) << 2) for each in headers
            )
        case Mode.ABS if number >= ANCILLARY:
            return (_ancillary(Ancillary(number - ANCILLARY), state, skb),)
        case Mode.ABS:
            return _read(number, instruction.size, packet)
        case _ if state.x.unknown:
            return _ANY, None
        case _:
            return _read(state.x.value + number & _ALL, instruction.size, packet)


def _header_length(byte: _Number) -> _Number:
    return _Number((byte.value & 15) << 2, (byte.unknown & 15) << 2)


def _read(at: int, size: int, packet: Contents) -> tuple[_Number | None, ...]:
    """Return the possible numbers at an offset (``bpf_skb_load_helper_32``)."""
    if at >= _NEGATIVE:
        if _LINK <= at < NETWORK:
            return _ANY, None
        linear = at - NETWORK + size <= 20  # the shortest IP header
        at -= NETWORK
        if at < 0 or at + size > len(packet.data):
            return (None,)
        if not linear:
            return (*_read(at, size, packet), None)
    if at + size > len(packet.data):
        return (None,)
    known = int.from_bytes(packet.known[at : at + size], "big")
    unknown = known ^ (1 << 8 * size) - 1
    return (_Number(int.from_bytes(packet.data[at : at + size], "big") & known, unknown),)


def _ancillary(what: Ancillary, state: _State, skb: Skb) -> _Number:
    match what:
        case Ancillary.PROTOCOL:
            return _Number(_TYPES[skb.packet.family])
        case Ancillary.PACKET_TYPE:
            return _Number(int(skb.type))
        case Ancillary.MARK:
            return _Number(skb.mark)
        case Ancillary.CPU:
            return _Number(skb.packet.cpu)
        case Ancillary.XOR:
            return _computed(Operation.XOR, state.a, state.x)


def _computed(operation: int, a: _Number, b: _Number) -> _Number:
    """Return ``a`` and ``b`` combined."""
    match operation:
        case Operation.AND:
            value = a.value & b.value
            return _Number(value, a.most & b.most & ~value)
        case Operation.OR:
            value = a.value | b.value
            return _Number(value, (a.most | b.most) & ~value)
        case Operation.XOR:
            unknown = a.unknown | b.unknown
            return _Number((a.value ^ b.value) & ~unknown, unknown)
        case Operation.LSH if not b.unknown:
            by = b.value & _SHIFTS
            return _Number(a.value << by & _ALL, a.unknown << by & _ALL)
        case Operation.RSH if not b.unknown:
            by = b.value & _SHIFTS
            return _Number(a.value >> by, a.unknown >> by)
        case Operation.NEG if not a.unknown:
            return _Number(-a.value & _ALL)
        case _ if a.unknown or b.unknown:
            return _ANY
    return _Number(_ARITHMETIC[operation](a.value, b.value) & _ALL)


_ARITHMETIC: Final[dict[int, Callable[[int, int], int]]] = {
    Operation.ADD: lambda a, b: a + b,
    Operation.SUB: lambda a, b: a - b,
    Operation.MUL: lambda a, b: a * b,
    Operation.DIV: lambda a, b: a // b,
    Operation.MOD: lambda a, b: a % b,
}


def _compared(condition: int, a: _Number, b: _Number) -> bool | None:
    """Return whether the condition of a jump holds; None if unknown bits decide."""
    match condition:
        case Comparison.EQUAL:
            if (a.value ^ b.value) & ~(a.unknown | b.unknown):
                return False
            return None if a.unknown or b.unknown else True
        case Comparison.GREATER:
            return True if a.value > b.most else False if a.most <= b.value else None
        case Comparison.AT_LEAST:
            return True if a.value >= b.most else False if a.most < b.value else None
        case _:
            return True if a.value & b.value else None if a.most & b.most else False
