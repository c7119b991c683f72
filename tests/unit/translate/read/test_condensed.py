"""A dump read by a sample of it becomes what it becomes when every line is read."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.lab.kuberules import Shape, draw_cluster, kube_proxy_rules
from translate import bpf, nft
from translate.errors import NfparityError
from translate.ir import Family, Program, Ruleset
from translate.passes import lower
from translate.passes.expand import expand
from translate.read.condensed import read_condensed
from translate.read.save import read_save

Outcome = tuple[Program | None, str]


def condensed(text: str, family: Family) -> Ruleset | None:
    return read_condensed(text, name="rules", family=family)


def whole(text: str, family: Family) -> Ruleset:
    return read_save(text, name="rules", family=family)


def becomes(read: Callable[[], Ruleset]) -> Outcome:
    """The Program at -O2 and its nftables text, or what is wrong."""
    try:
        program = lower(read(), level=2)
    except NfparityError as e:
        return None, str(e)
    try:
        return program, nft.emit(program).text
    except NfparityError as e:
        return program, str(e)


def is_lowered_by_sample(ruleset: Ruleset) -> bool:
    families = ruleset.families
    assert families is not None
    return expand(lower(families.sample, level=2), families) is not None


@cache
def cluster(shape: Shape) -> str:
    return kube_proxy_rules(draw_cluster(shape))


PLAIN = Shape(services=90, endpoints=2)
MIXED = Shape(
    services=260,
    endpoints=1,
    node_ports=30,
    load_balancers=24,
    external_ips=18,
    source_ranges=4,
    external_local=20,
    internal_local=18,
    affinity=3,
    without_endpoints=20,
    udp=30,
    sctp=3,
)
SHAPES = (
    PLAIN,
    MIXED,
    replace(MIXED, masquerade_agent=True, comments=False),
    replace(PLAIN, masquerade_all=True),
)


@pytest.mark.parametrize("family", Family)
@pytest.mark.parametrize("shape", SHAPES)
def test_clusters(shape: Shape, family: Family) -> None:
    shape = replace(shape, family=family)
    text = cluster(shape)
    read = condensed(text, family)
    assert read is not None
    assert is_lowered_by_sample(read)
    assert read.families is not None
    assert sum(len(c.rules) for t in read.families.sample.tables for c in t.chains) < text.count("\n-A ")
    assert becomes(lambda: read) == becomes(lambda: whole(text, family))
    assert read == whole(text, family)


def test_the_tc_program_is_the_same() -> None:
    text = cluster(PLAIN)
    made = [
        bpf.emit(lower(r, level=2)).render()
        for r in (condensed(text, Family.IP), whole(text, Family.IP))
        if r
    ]
    assert len(made) == 2
    assert made[0] == made[1]


def test_a_change_is_the_same() -> None:
    old = cluster(PLAIN)
    first = re.search(r"--to-destination (\S+)", old)
    assert first is not None
    new = old.replace(first[1], "10.9.8.7:6543")
    made = []
    for read in (condensed, whole):
        was, now = (read(text, Family.IP) for text in (old, new))
        assert was is not None
        assert now is not None
        outputs = [nft.emit(lower(ruleset, level=2)) for ruleset in (was, now)]
        made.append(outputs[1].change_from(outputs[0]))
    assert made[0] == made[1]
    assert made[0].kind is nft.ChangeKind.ELEMENTS


# Clusters in which something is different.

_ADDRESS = re.compile(r"(?<= -[sd] )[0-9a-f.:]+(?=/\d+ )")
_TARGET = re.compile(r"(?<=-j )KUBE-(?:SVC|SEP|EXT)-\S+")
_PORT = re.compile(r"(?<=--dport )\d+")

ODD_RULES = (
    "-j RETURN",
    "-j DROP",
    "-j KUBE-MARK-MASQ",
    "-p udp -j RETURN",
    "-m mark --mark 0x1 -j ACCEPT",
    "-s 10.244.0.0/16 -j RETURN",
    "-d 10.96.0.0/12 -j DROP",
    "-s 10.244.1.3/32 -j ACCEPT",
    "-p tcp -m tcp --dport 80 -j ACCEPT",
    "-p tcp -m tcp --dport 80:90 -j ACCEPT",
    "-p tcp -m multiport --dports 80,443 -j RETURN",
    "-m addrtype --dst-type LOCAL -j RETURN",
    "-m recent --set --name odd --mask 255.255.255.255 --rsource -j RETURN",
    "-m statistic --mode nth --every 2 --packet 0 -j RETURN",
    "-m statistic --mode random --probability 0.50000000000 -j RETURN",
    "-i eth0 -j RETURN",
    "-j KUBE-NODEPORTS",
    "-j NOWHERE",
)


def _insert(lines: list[str], at: int, rule: str) -> None:
    if lines[at].startswith("-A "):
        lines.insert(at, f"-A {lines[at].split()[1]} {rule}")


def _copied(pattern: re.Pattern[str], lines: list[str], one: int, other: int) -> None:
    """Put what the pattern finds in one line into the place of what it finds in the other."""
    found = pattern.search(lines[other])
    if found is not None:
        lines[one] = pattern.sub(found[0], lines[one], count=1)


@dataclass(frozen=True)
class Edit:
    """Something that is done to one line, given another one."""

    kind: str
    one: int
    other: int
    odd: str

    def apply(self, lines: list[str]) -> None:
        rules = [i for i, line in enumerate(lines) if line.startswith("-A ")]
        one, other = rules[self.one % len(rules)], rules[self.other % len(rules)]
        match self.kind:
            case "swap":
                lines[one], lines[other] = lines[other], lines[one]
            case "next":
                other = rules[(self.one + 1) % len(rules)]
                lines[one], lines[other] = lines[other], lines[one]
            case "delete":
                del lines[one]
            case "repeat":
                lines.insert(one, lines[one])
            case "negate":
                lines[one] = re.sub(r" (-[sd]) ", r" ! \1 ", lines[one], count=1)
            case "widen":
                lines[one] = re.sub(r"/(32|128) ", "/31 ", lines[one], count=1)
            case "address":
                _copied(_ADDRESS, lines, one, other)
            case "port":
                _copied(_PORT, lines, one, other)
            case "call":
                _copied(_TARGET, lines, one, other)
            case "goto":
                lines[one] = lines[one].replace(" -j KUBE-", " -g KUBE-")
            case "insert":
                _insert(lines, one, self.odd)
            case _:
                raise AssertionError(self.kind)


EDITS = st.builds(
    Edit,
    kind=st.sampled_from(
        ("swap", "next", "delete", "repeat", "negate", "widen", "address", "port", "call", "goto", "insert")
    ),
    one=st.integers(0, 5000),
    other=st.integers(0, 5000),
    odd=st.sampled_from(ODD_RULES),
)


@dataclass(frozen=True)
class Change:
    """Something that is done to all lines of some chains, so that they still are of one family."""

    chains: str
    kind: str
    odd: str

    def apply(self, lines: list[str]) -> None:
        head = f"-A {self.chains}"
        before = ""
        for at in range(len(lines) - 1, -1, -1):
            line = lines[at]
            if not line.startswith(head):
                continue
            chain = line.split()[1]
            match self.kind:
                case "first" if not lines[at - 1].startswith(f"-A {chain} "):
                    lines.insert(at, f"-A {chain} {self.odd}")
                case "last" if before != chain:
                    lines.insert(at + 1, f"-A {chain} {self.odd}")
                case "no address":
                    lines[at] = re.sub(r"(?: !)? -[sd] \S+", "", line)
                case "source":
                    lines[at] = line.replace(" -d ", " -s ")
                case "no protocol":
                    lines[at] = line.replace(" -p tcp", "")
                case "address alone":
                    lines[at] = re.sub(r" -p tcp| -m tcp --dport \d+", "", line)
                case "no port":
                    lines[at] = re.sub(r" -m tcp --dport \d+", "", line)
                case "even":
                    lines[at] = re.sub(r"--probability \S+", "--probability 0.25000000000", line)
                case "effect":
                    lines[at] = line.replace("-j KUBE-MARK-MASQ", "-j MARK --set-xmark 0x10/0x10")
                case "leave":
                    lines[at] = line.replace("-j KUBE-MARK-MASQ", "-j RETURN")
                case _:
                    pass
            before = chain


CHANGES = st.builds(
    Change,
    chains=st.sampled_from(
        (
            "KUBE-SEP",
            "KUBE-SVC",
            "KUBE-EXT",
            "KUBE-SERVICES",
            "KUBE-NODEPORTS",
            "KUBE-MARK-MASQ",
            "PREROUTING",
        )
    ),
    kind=st.sampled_from(
        (
            "first",
            "last",
            "no address",
            "source",
            "no protocol",
            "address alone",
            "no port",
            "even",
            "effect",
            "leave",
        )
    ),
    odd=st.sampled_from(ODD_RULES),
)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    shape=st.sampled_from(SHAPES),
    family=st.sampled_from(Family),
    changes=st.lists(CHANGES, max_size=2),
    edits=st.lists(EDITS, max_size=3),
)
def test_whatever_is_different(
    shape: Shape, family: Family, changes: list[Change], edits: list[Edit]
) -> None:
    lines = cluster(replace(shape, family=family)).split("\n")
    for change in (*changes, *edits):
        change.apply(lines)
    text = "\n".join(lines)
    read = condensed(text, family)
    if read is None:
        return
    wanted = becomes(lambda: whole(text, family))
    assert becomes(lambda: read) == wanted
