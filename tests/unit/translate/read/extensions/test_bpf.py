from __future__ import annotations

import pytest

import translate.bpf
import translate.nft
from harness.corpus.formats import ruletext
from tests.unit.translate.read.conftest import ReadFault, ReadRule
from translate.errors import UnsupportedError
from translate.ir import BytecodeTest, Family
from translate.ir.bytecode import Instruction, bytecode_text
from translate.passes import lower
from translate.read import read_ruleset

TCP = "4,48 0 0 9,21 0 1 6,6 0 0 1,6 0 0 0"
PROGRAM = (
    Instruction(48, 0, 0, 9),
    Instruction(21, 0, 1, 6),
    Instruction(6, 0, 0, 1),
    Instruction(6, 0, 0, 0),
)
RETURN = "6 0 0 1"


@pytest.mark.parametrize("text", [TCP, f"{TCP},", " 4,48 0 0 9 x, 21 0  257 6,6 0 0 1,6 256 0 4294967296"])
def test_a_program_is_read_as_sscanf_does(read_rule: ReadRule, text: str) -> None:
    rule = read_rule(f'-m bpf --bytecode "{text}" -j DROP')
    assert rule.tests == (BytecodeTest(program=PROGRAM),)
    assert bytecode_text(PROGRAM) == TCP


@pytest.mark.parametrize("number", ["18446744073709551616", "9" * 5000, "-1", f"-{'9' * 5000}"])
def test_a_number_of_more_than_64_bits_is_the_greatest(read_rule: ReadRule, number: str) -> None:
    """glibc's ``sscanf`` reads it so, and iptables uses that."""
    (test,) = read_rule(f'-m bpf --bytecode "1,6 0 0 {number}" -j DROP').tests
    assert isinstance(test, BytecodeTest)
    assert test.program == (Instruction(6, 0, 0, 0xFFFFFFFF),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "begins with its number of instructions"),
        ("1 6 0 0 1", "begins with its number of instructions"),
        ("0,6 0 0 1", "has 1 to 64 instructions"),
        (f"65,{','.join([RETURN] * 65)}", "has 1 to 64 instructions"),
        (f"2,{RETURN}", "has 1 instructions, not 2"),
        (f"1,{RETURN},{RETURN}", "has 2 instructions, not 1"),
        ("1,6 0 0", "instruction 0 is not four numbers"),
        ("1,6 0 0 ٣", "instruction 0 is not four numbers"),
        ("1,4 0 0 1", "the last instruction does not return"),
        (f"2,52 0 0 0,{RETURN}", "instruction 0 divides by zero"),
        (f"2,100 0 0 32,{RETURN}", "shifts by more than 31 bits"),
        (f"2,2 0 0 16,{RETURN}", "a cell of memory beyond the last"),
        (f"2,96 0 0 3,{RETURN}", "instruction 0 reads memory that is not written"),
        (f"4,21 0 1 0,2 0 0 3,96 0 0 3,{RETURN}", "instruction 2 reads memory that is not written"),
        (f"2,5 0 0 1,{RETURN}", "instruction 0 jumps behind the end"),
        (f"2,21 1 0 1,{RETURN}", "instruction 0 jumps behind the end"),
        (f"2,140 0 0 1,{RETURN}", "a code that classic BPF does not have"),
        (f"2,32 0 0 4294963201,{RETURN}", "loads what the kernel does not have"),
    ],
)
def test_what_iptables_does_not_take(read_fault: ReadFault, text: str, message: str) -> None:
    assert message in read_fault(f'-m bpf --bytecode "{text}"').message


@pytest.mark.parametrize(
    ("load", "what"),
    [
        ("40 0 0 4294963208", "reads the index of the interface"),
        ("32 0 0 4294963256", "reads the random numbers"),
        ("32 0 0 4293918741", "reads bytes that may not be linear"),
        ("48 0 0 4292870144", "reads the link header"),
    ],
)
def test_what_is_kept_as_written(read_rule: ReadRule, load: str, what: str) -> None:
    (unknown,) = read_rule(f'-m bpf --bytecode "2,{load},{RETURN}"').unknown
    assert what in unknown.reason
    assert unknown.feature == "unmodelled"


def test_a_program_of_somebody_else_is_refused(read_rule: ReadRule, read_fault: ReadFault) -> None:
    (unknown,) = read_rule("-m bpf --object-pinned /sys/fs/bpf/one").unknown
    assert unknown.feature == "bpf"
    assert 'bpf needs the option "--bytecode"' in read_fault("-m bpf").message


def test_a_listing_ends_it_with_a_zero() -> None:
    text = (
        "Chain FORWARD (policy ACCEPT)\n"
        "target     prot opt source               destination         \n"
        "DROP       all  --  0.0.0.0/0            0.0.0.0/0           "
        f"match bpf {TCP.partition(',')[2]}\0 length 5\n"
    )
    (rule,) = read_ruleset(text.encode(), name="listing").tables[0].chains[0].rules
    assert rule.tests[0] == BytecodeTest(program=PROGRAM)
    assert [spelled.name for spelled in rule.matches] == ["bpf", "length"]


def test_its_translations() -> None:
    text = f'*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -m bpf --bytecode "{TCP}" -j DROP\nCOMMIT\n'
    program = lower(read_ruleset(text.encode(), name="rules"), level=2)
    with pytest.raises(UnsupportedError, match="nf_tables runs no BPF program"):
        translate.nft.emit(program)
    assert f"/* {TCP} */" in translate.bpf.emit(program).source
    sentence = ruletext.test_text(BytecodeTest(program=PROGRAM), Family.IP)
    assert sentence == f"the program {TCP} takes its bytes"
