from __future__ import annotations

from translate.bpf.chains.hashmarks import hash_mark_code
from translate.ir import HashMark

ACTION = HashMark(
    source_mask=0xFFFFFF00,
    destination_mask=0,
    port_mask=0xFFFF,
    port_set=0x10000,
    protocol_mask=0xFF,
    seed=5,
    modulus=10,
    offset=100,
)


def test_the_numbers_are_in_the_text() -> None:
    code = hash_mark_code(ACTION)
    assert code.lines[2:4] == (
        "\tif (fields_of_packet(skb, p, &f))",
        "\t\tmark_by_hash(p, &f, (struct hash_rule){ .source_mask = 0xffffff00, .destination_mask = 0x0,"
        " .port_mask = 0xffff, .port_set = 0x10000, .protocol_mask = 0xff, .seed = 0x5, .modulus = 0xa,"
        " .offset = 0x64 });",
    )
    assert {part.value for part in code.needs.parts} == {"hmark"}
