"""The reader on damaged input: a ParseError with places or a ruleset, never anything else.

Dumps and listings that people have are damaged by words and lines lost, repeated, swapped and spoiled.
What can still be read and written is stable: it is read as the same again.
"""

from __future__ import annotations

import functools
import random
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tests.lab.examples import examples
from tests.lab.random.rules import random_rules
from translate.errors import ParseError, UnsupportedError
from translate.ir import Family, Policy, Ruleset, TableName
from translate.read import InputForm, read_pieces, read_ruleset
from translate.write import write_save

RULESETS = Path(__file__).parents[3] / "corpus/rulesets"
DUMPS = sorted(RULESETS.glob("*/rules.*save"))
REAL = sorted((Path(__file__).parents[4].parent / "shared/corpora/real-dumps").glob("*save*"))
SEEDS = sorted((Path(__file__).parents[4].parent / "shared/seeds").glob("*.txt"))
LISTING = """\
Chain PREROUTING (policy ACCEPT 12 packets, 720 bytes)
 pkts bytes target         prot opt in     out     source               destination
    3   180 KUBE-SERVICES  all  --  *      *       0.0.0.0/0            0.0.0.0/0            /* kubernetes service portals */

Chain KUBE-SERVICES (1 references)
num  target                     prot opt source          destination
1    KUBE-SVC-A  tcp  --  anywhere        10.96.0.1       /* a:b cluster IP */ tcp dpt:https
2    KUBE-MARK-MASQ  udp  -- !10.244.0.0/16   10.96.0.10      udp dpt:domain
3    RETURN  icmp --  anywhere  anywhere  icmp echo-request ADDRTYPE match dst-type LOCAL

Chain KUBE-SVC-A (1 references)
target  prot opt source   destination
DNAT    tcp  --  0.0.0.0/0  0.0.0.0/0  statistic mode random probability 0.50000000000 to:10.244.0.3:6443
DNAT    tcp  --  0.0.0.0/0  0.0.0.0/0  recent: CHECK seconds: 10800 reap name: L side: source mask: 255.255.255.255 tcp to:10.244.0.4:6443
MARK    all  --  0.0.0.0/0  0.0.0.0/0  MARK or 0x4000

Chain KUBE-MARK-MASQ (1 references)
target     prot opt source    destination
MARK       all  --  anywhere  anywhere   MARK xset 0x4000/0x4000
"""  # noqa: E501  # listings are wide
RESTORE = """\
*nat
:KUBE-SVC-A - [0:0]
:KUBE-SEP-B - [0:0]
:KUBE-OLD - [0:0]
-F KUBE-SVC-A
-A KUBE-SVC-A -m comment --comment "a/b" -m statistic --mode random --probability 0.50000000000 -j KUBE-SEP-B
-I KUBE-SVC-A 1 -s 10.0.0.0/8 -j RETURN
-D KUBE-SVC-A -s 10.0.0.0/8 -j RETURN
-A KUBE-SEP-B -m tcp -p tcp -j DNAT --to-destination 10.244.0.3:80
-A POSTROUTING -m mark --mark 0x4000/0x4000 -j MASQUERADE
-X KUBE-OLD
COMMIT
"""
SPOILERS = ("!", '"', "-", "--", "0", "999999999999999999999", "-j", "-m", "*nat", "COMMIT", "\\", "\t",
            "ACCEPT", "é", "\udcff", "[0:0]", "/", ":", ",", "0x", "::", "1.2.3.4/33")  # fmt: skip


@functools.cache
def texts(form: InputForm) -> tuple[str, ...]:
    saved = tuple(p.read_bytes().decode("utf-8", "surrogateescape")[:20_000] for p in (*DUMPS, *REAL))
    match form:
        case InputForm.SAVE:
            return saved
        case InputForm.RULES:
            return tuple(as_printed_by_s(text) for text in saved)
        case InputForm.RESTORE:
            return (RESTORE, *saved)
        case InputForm.LISTING:
            return (LISTING,)


def as_printed_by_s(text: str) -> str:
    """The first table of a dump as ``iptables -S`` prints it."""
    lines = []
    for line in text.partition("COMMIT")[0].split("\n"):
        if line.startswith(":"):
            name, policy = line[1:].split()[:2]
            lines.append(f"-N {name}" if policy == "-" else f"-P {name} {policy}")
        elif rule := re.match(r"(?:\[\d+:\d+\] )?(-A.*)", line):
            lines.append(rule[1])
    return "\n".join(lines) + "\n"


def damaged(text: str, draw: random.Random, times: int) -> str:
    lines = [line.split(" ") for line in text.split("\n")]
    for _ in range(times):
        line = draw.randrange(len(lines))
        other = draw.randrange(len(lines))
        words = lines[line]
        at = draw.randrange(len(words)) if words else 0
        match draw.randrange(9):
            case 0 if len(lines) > 1:
                del lines[line]
            case 1:
                lines.insert(other, list(words))
            case 2:
                lines[line], lines[other] = lines[other], lines[line]
            case 3 if words:
                del words[at]
            case 4 if words:
                words.insert(draw.randrange(len(words)), words[at])
            case 5 if words and lines[other]:
                words[at] = draw.choice(lines[other])
            case 6 if words:
                word = words[at]
                cut = draw.randint(0, len(word))
                words[at] = word[:cut] + draw.choice(SPOILERS) + word[cut + draw.randint(0, 2) :]
            case 7:
                words.insert(at, draw.choice(SPOILERS))
            case 8 if draw.random() < 0.2:
                lines = lines[: line + 1]
                words[at:] = []
    return "\n".join(" ".join(words) for words in lines)


def read(text: str, form: InputForm | None, family: Family | None, table: TableName | None) -> Ruleset | None:
    """The ruleset, or None after a ParseError, which must say where and in how few words."""
    data = text.encode("utf-8", "surrogateescape")
    try:
        return read_ruleset(data, name="f", form=form, family=family, table=table)
    except ParseError as error:
        found = error.diagnostics
    assert 1 <= len(found) <= 21
    for one in found:
        assert one.origin.file == "f"
        assert one.origin.line <= text.count("\n") + 1
        assert one.message.isprintable()
        assert one.render()
    return None


@pytest.mark.parametrize("form", InputForm)
@given(
    seed=st.integers(0, 1 << 32),
    times=st.integers(1, 6),
    named=st.booleans(),
    family=st.sampled_from([None, None, *Family]),
    table=st.sampled_from([None, TableName.NAT, TableName.FILTER]),
)
@settings(max_examples=examples(150), suppress_health_check=list(HealthCheck))
def test_damaged_input(form, seed, times, named, family, table):
    draw = random.Random(seed)
    text = damaged(draw.choice(texts(form)), draw, times)
    ruleset = read(text, form if named else None, family, table)
    event(f"{form}: {'read' if ruleset is not None else 'refused'}")
    if ruleset is not None:
        stable(ruleset)


def stable(ruleset: Ruleset) -> None:
    """A written ruleset is read as the same, and written the same again."""
    try:
        written = write_save(ruleset)
    except UnsupportedError:
        assert list(ruleset.unknowns())
        return
    data = written.encode("utf-8", "surrogateescape")
    again = read_ruleset(data, name="f", form=InputForm.SAVE, family=ruleset.family)
    assert meaning(again) == meaning(ruleset)
    assert write_save(again) == written


def meaning(ruleset: Ruleset) -> object:
    """All but counters and policies that the input does not say, which are written as iptables has them."""
    return [
        (
            t.name,
            c.name,
            c.policy or (c.hook and Policy.ACCEPT),
            [(r.tests, r.actions, r.comment) for r in c.rules],
        )
        for t in ruleset.tables
        for c in t.chains
    ]


@given(seed=st.integers(0, 1 << 32))
@settings(max_examples=examples(60), suppress_health_check=list(HealthCheck))
def test_damaged_pages(seed):
    draw = random.Random(seed)
    pages = [p.read_text() for p in SEEDS] or [f"Look:\n\n{LISTING}\nand\n{RESTORE}\nthat was it.\n"]
    text = damaged(draw.choice(pages), draw, 4)
    try:
        pieces = read_pieces(text.encode("utf-8", "surrogateescape"), name="f")
    except ParseError:
        return
    for piece in pieces:
        stable(piece)


@pytest.mark.parametrize("path", [*DUMPS, *REAL], ids=lambda p: f"{p.parent.name}/{p.name}")
def test_whole_dumps_are_stable_in_every_form(path):
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    try:
        saved = read_ruleset(text.encode("utf-8", "surrogateescape"), name=path.name)
    except ParseError as error:
        pytest.skip(f"is not read: {error.diagnostics[0].message}")
    stable(saved)
    first = saved.tables[0]
    printed = as_printed_by_s(text)
    if not printed.strip() or any(c.hook and c.policy is None for c in first.chains):
        return  # no table, or one that does not say what -S always prints
    rules = read_ruleset(
        printed.encode("utf-8", "surrogateescape"),
        name="f",
        form=InputForm.RULES,
        family=saved.family,
        table=first.name,
    )
    assert [c.name for c in rules.tables[0].chains] == [c.name for c in first.chains]
    assert [[r.tests for r in c.rules] for c in rules.tables[0].chains] == [
        [r.tests for r in c.rules] for c in first.chains
    ]
    stable(rules)


@given(seed=st.integers(0, 1 << 32))
@settings(max_examples=examples(60), suppress_health_check=list(HealthCheck))
def test_random_rules_are_stable(seed):
    stable(read_ruleset(random_rules(seed).encode(), name="f"))
