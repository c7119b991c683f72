"""Text that is no Program is refused with line and column."""

from __future__ import annotations

import pytest

from translate.errors import ParseError
from translate.irtext import parse_program

CHAIN = "program ip\nchain filter/INPUT {\n"


def fault(text: str) -> tuple[int, int, str]:
    with pytest.raises(ParseError) as raised:
        parse_program(text, name="text")
    (diagnostic,) = raised.value.diagnostics
    assert diagnostic.origin.file == "text"
    return diagnostic.origin.line, diagnostic.origin.column, diagnostic.message


@pytest.mark.parametrize(
    ("statement", "column", "message"),
    [
        ("drp", 1, "expected an action, found 'drp'"),
        ("drop, ", 6, "expected an action, found the end of the line"),
        ("drop drop", 6, "expected nothing more on this line, found 'drop'"),
        ("ip.dadr == 1.2.3.4 -> drop", 1, "expected a field, found 'ip.dadr'"),
        ("ip.daddr 1.2.3.4 -> drop", 10, "expected ==, found '1.2.3.4'"),
        ("ip.daddr == 1.2.3.400 -> drop", 13, "not an IPv4 address: '1.2.3.400'"),
        ("ip.daddr == fe80::1 -> drop", 13, "not an IPv4 address: 'fe80::1'"),
        ("ip.daddr == 10.0.0.0/33 -> drop", 22, "33 is more than 32"),
        ("ip.daddr == 10.0.0.1/24 -> drop", 13, "10.0.0.1/24 has bits set after its prefix"),
        ("l4.dport == 65536 -> drop", 13, "65536 is more than 65535"),
        ("l4.dport == 90-80 -> drop", 13, "the range 90-80 ends before it begins"),
        ("l4.dport == 80-x -> drop", 16, "expected a value of l4.dport, found 'x'"),
        ("l4.dport == {80 90} -> drop", 17, "expected ,, found '90'"),
        ("ct.state == newish -> drop", 13, "expected a value of ct.state, found 'newish'"),
        (
            "not l4.dport == 80 -> drop",
            5,
            "expected any, random, nth, set, label, cluster, cgroup, recent, quota or words,"
            " found 'l4.dport'",
        ),
        ("random 1/2 -> drop", 8, "expected a share such as 1073741824/2^31, found '1/2'"),
        ("set a(source) -> drop", 7, "expected src or dst, found 'source'"),
        ("recent watch a src mask 255.255.255.255 -> drop", 8, "expected set or rcheck or update or remove"),
        ("mark set-xmark 0x1 -> drop", 1, "expected a field, found 'mark'"),
        ("mark set-xmark 0x1", 16, "expected a mark and its mask, found '0x1'"),
        ("mark set-xmark 0x1/0x100000000", 20, "0x100000000 is more than 4294967295"),
        ("connmark keep", 10, "expected set-xmark, save-mark or restore-mark, found 'keep'"),
        ("reject tcp-rst", 8, "expected icmp-net-unreachable or"),
        ('log "a level 4', 5, "a quote that is not closed"),
        (r'log "a\q" level 4', 7, "an unknown escape"),
        ("log level 4", 11, "expected level, found '4'"),
        ("drop  # here", 7, "expected the line number of the origin"),
        ("drop  # 3:x", 7, "expected the line number of the origin"),
        ("lookup ip.daddr . {", 19, "expected a field, found '{'"),
        ("lookup ip.daddr", 16, "expected {, found the end of the line"),
        ("choose even {", 8, "expected {, found 'even'"),
    ],
)
def test_statements(statement: str, column: int, message: str) -> None:
    line, where, text = fault(f"{CHAIN}{statement}\n}}\n")
    assert (line, where) == (3, column)
    assert text.startswith(message)


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("", 1, 1, "expected program ip or program ip6, found the end of the text"),
        ("\n# nothing\n", 3, 1, "expected program ip or program ip6, found the end of the text"),
        ("chain filter/INPUT {\n}\n", 1, 1, "expected program, found 'chain'"),
        ("program ip4\n", 1, 9, "expected ip or ip6, found 'ip4'"),
        ("program ip\ntable x {\n}\n", 2, 1, "expected set or chain, found 'table'"),
        ("program ip\nchain INPUT {\n}\n", 2, 7, "expected a chain with its table, found 'INPUT'"),
        ("program ip\nchain nat/A hook INGRESS {\n}\n", 2, 18, "expected PREROUTING or INPUT or"),
        ("program ip\nchain nat/A priority high {\n}\n", 2, 22, "expected a priority, found 'high'"),
        ("program ip\nchain nat/A {\n}\nset b {\n", 4, 1, "expected chain, found 'set'"),
        ("program ip\nset a type list {\n}\n", 2, 12, "unknown set type 'list'"),
        (f"{CHAIN}drop\n", 4, 1, "expected }, found the end of the text"),
        (f"{CHAIN}lookup ip.daddr . l4.dport {{\n1.2.3.4 -> drop\n", 4, 9, "expected ., found '->'"),
        (f"{CHAIN}choose {{\n0x80000001/2^31 -> drop\n", 4, 1, "0x80000001 is more than 2147483648"),
    ],
)
def test_blocks(text: str, line: int, column: int, message: str) -> None:
    found = fault(text)
    assert found[:2] == (line, column)
    assert found[2].startswith(message)


def test_the_error_shows_the_line() -> None:
    with pytest.raises(ParseError) as raised:
        parse_program(f"{CHAIN}    ip.daddr == x -> drop  # 3\n}}\n", name="a.ir")
    assert str(raised.value) == (
        "a.ir:3:17: not an IPv4 address: 'x'\n        ip.daddr == x -> drop  # 3\n                    ^"
    )
