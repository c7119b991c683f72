from __future__ import annotations

from translate.bpf.chains.bytecode import bytecode_condition
from translate.bpf.chains.code import Feature
from translate.ir import BytecodeTest
from translate.ir.bytecode import read_bytecode


def function(*instructions: str) -> str:
    """The body of the function of a program in one line."""
    text = ",".join((str(len(instructions)), *instructions))
    condition = bytecode_condition(BytecodeTest(program=read_bytecode(text)))
    (declaration,) = condition.needs.declarations
    assert declaration.lines[0] == f"/* {text} */"
    return " ".join(line.strip() for line in declaration.lines[3:-2])


def test_a_load_behind_the_end_returns() -> None:
    body = function("48 0 0 9", "21 0 1 6", "6 0 0 1", "6 0 0 0")
    assert body == (
        "u32 a = 0, x = 0;  if (!load_bytes(skb, p, 0x9, 1, &a)) return 0;"
        " if (a == 0x6) goto at_2; goto at_3; at_2: return 1; at_3: return 0;"
    )


def test_what_no_jump_reaches_is_left_out() -> None:
    assert function("5 0 0 1", "22 0 0 0", "6 0 0 7") == "u32 a = 0, x = 0;  goto at_2; at_2: return 1;"
    assert function("21 1 1 5", "4 0 0 1", "22 0 0 0").endswith("goto at_2; at_2: return a != 0;")


def test_memory_and_arithmetic() -> None:
    body = function("128 0 0 0", "2 0 0 5", "135 0 0 0", "97 0 0 5", "60 0 0 0", "108 0 0 0", "22 0 0 0")
    assert body.startswith("u32 a = 0, x = 0, m5 = 0;  a = p->length; m5 = a; a = x; x = m5;")
    assert "if (!x) return 0; a /= x; a <<= (x & 31);" in body


def test_headers_and_values_beside_the_packet() -> None:
    body = function("177 0 0 0", "72 0 0 2", "32 0 0 4294963220", "32 0 0 4294963240", "22 0 0 0")
    assert "load_bytes(skb, p, 0x0, 1, &x)) return 0; x = (x & 15) << 2;" in body
    assert "load_bytes(skb, p, x + 0x2, 2, &a)) return 0; a = p->mark; a = a ^ x;" in body


def test_the_kind_of_a_frame_is_read_if_a_program_loads_it() -> None:
    test = BytecodeTest(program=read_bytecode("2,32 0 0 4294963204,22 0 0 0"))
    assert bytecode_condition(test).needs.features == {Feature.FRAMES}
