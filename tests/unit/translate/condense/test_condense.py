"""The fast path for large rulesets has the results of the plain path."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.lab.examples import examples
from tests.lab.kuberules import Shape, draw_cluster, kube_proxy_rules
from translate import bpf, condense, nft, passes
from translate.errors import NfparityError
from translate.ir import Family, Program, Ruleset
from translate.nft.elements import ListedElements
from translate.read import InputForm, read_ruleset

Result = tuple[Program | None, str, str]


def condensed(text: str, family: Family) -> condense.CondensedRuleset | None:
    return condense.condense(text, name="rules", family=family)


def whole(text: str, family: Family) -> Ruleset:
    return read_ruleset(text.encode(), name="rules", family=family)


def plain(text: str, family: Family) -> Result:
    """The Program at -O2, its nftables text and its tc program; or what is wrong."""
    try:
        program = passes.lower(whole(text, family), level=2)
    except NfparityError as e:
        return None, str(e), ""
    return program, written(lambda: nft.emit(program).text), written(lambda: bpf.emit(program).render())


def fast(ruleset: condense.CondensedRuleset) -> Result:
    """The same as :func:`plain`, by way of the sample."""
    try:
        lowered = condense.lower(ruleset, level=2)
    except NfparityError as e:
        return None, str(e), ""
    program = condense.whole_program(lowered)
    text = written(lambda: condense.emit_nft(lowered).text)
    return program, text, written(lambda: bpf.emit(program).render())


def written(emit: Callable[[], str]) -> str:
    try:
        return emit()
    except NfparityError as e:
        return str(e)


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
    assert sum(len(c.rules) for t in read.sample.tables for c in t.chains) < text.count("\n-A ")
    lowered = condense.lower(read, level=2)
    assert isinstance(lowered, condense.CondensedProgram)
    output = condense.emit_nft(lowered)
    assert any(not isinstance(each.elements, ListedElements) for each in output.structure.maps)
    assert fast(read) == plain(text, family)
    assert read.whole() == whole(text, family)


@pytest.mark.parametrize("level", [0, 1])
def test_lower_levels_lower_every_rule(level: int) -> None:
    text = cluster(PLAIN)
    read = condensed(text, Family.IP)
    assert read is not None
    assert condense.lower(read, level=level) == passes.lower(whole(text, Family.IP), level=level)


def test_a_large_dump_is_condensed_and_no_other_input() -> None:
    text = cluster(replace(PLAIN, services=400))
    data = text.encode()
    assert len(data) > condense.LARGE
    assert isinstance(condense.read_large(data, name="rules"), condense.CondensedRuleset)
    small = cluster(replace(PLAIN, services=20)).encode()
    assert condense.read_large(small, name="rules") == read_ruleset(small, name="rules")
    assert isinstance(condense.read_large(data, name="rules", form=InputForm.RESTORE), Ruleset)


def test_elements_are_counted_without_being_made() -> None:
    data = cluster(Shape(services=1200, node_ports=40)).encode()
    output = condense.emit_nft(condense.lower(condense.read_large(data, name="rules"), level=2))
    maps = output.structure.maps
    assert [m.elements.count for m in maps] == [len(m.elements.listed()) for m in maps]
    assert output.text.count("\tsize ") == sum(m.elements.count > 1023 for m in maps) > 3


def test_a_change_is_the_same() -> None:
    old = cluster(PLAIN)
    first = re.search(r"--to-destination (\S+)", old)
    assert first is not None
    new = old.replace(first[1], "10.9.8.7:6543")
    made = []
    for read in (condensed, whole):
        was, now = (read(each, Family.IP) for each in (old, new))
        assert was is not None
        assert now is not None
        before, after = (condense.emit_nft(condense.lower(each, level=2)) for each in (was, now))
        made.append(after.change_from(before))
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


@settings(max_examples=examples(20), deadline=None, suppress_health_check=list(HealthCheck))
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
    several: list[Change | Edit] = [*changes, *edits]
    for change in several:
        change.apply(lines)
    text = "\n".join(lines)
    read = condensed(text, family)
    if read is None:
        return
    assert fast(read) == plain(text, family)
