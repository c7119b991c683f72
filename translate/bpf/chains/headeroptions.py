"""Tests of options in headers of IPv6 as C: a function for each test, which reads the options in order."""

from __future__ import annotations

from hashlib import sha256

from translate.bpf.chains.code import Condition, Declaration, Feature, Needs
from translate.bpf.layout.tables import RuntimePart
from translate.ir import Field, HeaderOptions

__all__ = ["options_condition"]

_ANY_LENGTH = 0x100


def options_condition(test: HeaderOptions) -> Condition:
    """Return the condition that a packet passes a test, with the function that decides it."""
    header = "hop" if test.header is Field.HOP_LENGTH else "destination"
    listed = ",".join(str(kind) if length is None else f"{kind}:{length}" for kind, length in test.options)
    name = f"options_{sha256(f'{header} {listed}'.encode()).hexdigest()[:16]}"
    lines = [
        f"/* {header} {listed} */",
        f"INLINE int {name}(struct __sk_buff *skb, struct pkt *p)",
        "{",
        f"\tstruct options o = begin_options(p, p->has_{header}, p->{header}_at, p->{header}_length);",
        "",
    ]
    for kind, length in test.options:
        most = _ANY_LENGTH if length is None else length
        lines += [f"\tif (!next_option(skb, &o, {kind:#x}, {most:#x}))", "\t\treturn 0;"]
    lines += ["\treturn 1;", "}", ""]
    needs = Needs(
        parts=frozenset({RuntimePart.OPTIONS}),
        features=frozenset({Feature.OPTIONS}),
        declarations=(Declaration(tuple(lines)),),
    )
    return Condition(f"{name}(skb, p)", needs)
