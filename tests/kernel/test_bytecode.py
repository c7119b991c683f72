"""Bytecode of every statement by the nft of Debian 12 and 13, against the meaning of the rules."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from nfparity.inputs.rules import load_rules
from tests.lab.bytecode import Difference, Nft, NftError, check
from tests.lab.bytecode.expressible import expressible
from tests.lab.random.matches import matching_rules
from tests.lab.random.rules import random_rules
from translate.errors import MachineError
from translate.ir import Family, Field, Program, Ruleset
from translate.nft.legalise import apart, containers, draft, headers
from translate.nft.printer import logging, matches
from translate.passes import LEVELS, lower
from translate.read import read_ruleset
from vm.nft import RELEASES, ensure_nft

ROOT = Path(__file__).parents[2]
UNTRANSLATED = ("counters.rules", "segments6.rules", "cgroups.rules", "secmark.rules", "other-extensions")
"""Files and folders of rules that no translation takes, or that need cgroups or a security module."""
RULESETS = sorted(
    path
    for path in (ROOT / "tests/corpus/rulesets").glob("*/*")
    if path.name.endswith(("rules", "tables-save")) and not {path.name, path.parent.name} & set(UNTRANSLATED)
)
AT_ONCE = ("every-", "kind-node", "kube-real", "nft-traps")
"""The beginnings of the names of rulesets and folders that ``make test`` takes."""
SEEDS = range(8)
SOME_SEEDS = [pytest.param(seed, marks=[pytest.mark.slow] if seed > 1 else []) for seed in SEEDS]


def _nft(release: str) -> Nft:
    return Nft(f"nft {RELEASES[release]}", ensure_nft(release, build=ROOT / "build", say=print))


@pytest.fixture(scope="module")
def compilers() -> list[Nft]:
    """The nft of each release that can be had."""
    found = []
    for release in RELEASES:
        try:
            found.append(_nft(release))
        except MachineError as e:
            print(f"without the nft of {release}: {e}")
    if not found:
        pytest.skip("no nft can be had")
    return found


@pytest.mark.parametrize("release", RELEASES)
def test_the_nft_of_a_release_is_there(release: str) -> None:
    try:
        nft = _nft(release)
    except MachineError as e:
        pytest.skip(str(e))
    assert RELEASES[release] in nft.version()


def _shown(differences: Iterable[Difference]) -> str:
    return "\n".join(difference.render() for difference in differences)


def _same(ruleset: Ruleset, compilers: list[Nft]) -> None:
    """Every statement means what it says, and the text of every level loads."""
    programs = [lower(ruleset, level=level) for level in LEVELS]
    checked = check(programs, compilers)
    assert checked.statements or checked.refused
    assert not checked.differences, _shown(checked.differences)
    _load(programs, compilers)


def _load(programs: list[Program], compilers: list[Nft]) -> None:
    for text in dict.fromkeys(expressible(program)[1].text for program in programs):
        for nft in compilers:
            nft.load(text)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(
            path,
            id=f"{path.parent.name}-{path.name}",
            marks=[]
            if path.name.startswith(AT_ONCE) or path.parent.name.startswith(AT_ONCE)
            else pytest.mark.slow,
        )
        for path in RULESETS
    ],
)
def test_a_ruleset(path: Path, compilers: list[Nft]) -> None:
    if b"QUEUE" in path.read_bytes():
        try:
            compilers[0].compiled("table ip t {\n\tchain c {\n\t\tqueue num 0\n\t}\n}\n")
        except NftError:
            pytest.skip("this kernel has no nft_queue (CONFIG_NFT_QUEUE)")
    _same(load_rules(str(path)), compilers)


@pytest.mark.parametrize("seed", SOME_SEEDS)
def test_random_rules(seed: int, compilers: list[Nft]) -> None:
    _same(read_ruleset(random_rules(seed).encode(), name=f"seed {seed}"), compilers)


@pytest.mark.parametrize("family", Family)
@pytest.mark.parametrize("seed", SOME_SEEDS)
def test_random_matches(seed: int, family: Family, compilers: list[Nft]) -> None:
    _same(matching_rules(seed, family), compilers)


@dataclass(frozen=True)
class Fault:
    """A fault that the translation had, put back; ``seed`` and ``family`` of random matches show it."""

    name: str
    module: ModuleType
    attribute: str
    value: object
    seed: int
    family: Family


NO_PROTOCOL = {field: bits for field, bits in apart._ALL_BITS.items() if field is not Field.CT_PROTO}
FAULTS = (
    Fault("two negated ports become one", apart, "_joined", lambda *_: False, 1, Family.IP),
    Fault("the protocol of a connection is the packet's", apart, "_ALL_BITS", NO_PROTOCOL, 0, Family.IP6),
    Fault("ports are joined across a counter", apart, "_REMEMBERS", (), 7, Family.IP6),
    Fault("a counter counts every protocol", headers, "_counts", lambda _: False, 2, Family.IP),
    Fault(
        "a reset behind a lookup does not load",
        containers,
        "_resets_behind_others",
        lambda *_: False,
        14,
        Family.IP6,
    ),
    Fault(
        "a key of ICMP stands behind another protocol",
        containers,
        "_with_protocol",
        lambda lookup, _: lookup.tests,
        0,
        Family.IP,
    ),
    Fault("a broadcast address is a source", matches, "_NO_BROADCAST", "", 1, Family.IP),
    Fault(
        "gotos are too deep", import_module("translate.nft.legalise.chains"), "MAX_DEPTH", 99, 2, Family.IP6
    ),
    Fault("fragments have ports", draft, "guard_transport", lambda *_: (), 11, Family.IP),
    Fault("fragments of IPv6 have ports", draft, "guard_transport", lambda *_: (), 11, Family.IP6),
    Fault("a prefix has variables", logging, "_VARIABLE", re.compile("(nothing)"), 0, Family.IP),
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_random_matches_show_a_fault(
    fault: Fault, compilers: list[Nft], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fault.module, fault.attribute, fault.value)
    # The seed is where it is now; should the words change, another one shows it.
    assert any(_shows(matching_rules(seed, fault.family), compilers) for seed in (fault.seed, *SEEDS))


def _shows(ruleset: Ruleset, compilers: list[Nft]) -> bool:
    programs = [lower(ruleset, level=level) for level in LEVELS]
    try:
        if check(programs, compilers).differences:
            return True
        _load(programs, compilers)
    except NftError:
        return True
    return False


def _rules(table: str, *lines: str) -> Ruleset:
    heads = {"raw": ("PREROUTING",), "filter": ("INPUT", "FORWARD")}[table]
    text = "\n".join((f"*{table}", *(f":{h} ACCEPT [0:0]" for h in heads), *lines, "COMMIT", ""))
    return read_ruleset(text.encode(), name="rules")


EVERY_THIRD = "-m statistic --mode nth --every 3 --packet 0"
BOTH = frozenset({"nft 1.0.6", "nft 1.1.3"})
OLD = frozenset({"nft 1.0.6"})
JOINED = (
    ("-p tcp -m tcp ! --sport 443 ! --dport 443 -j DROP", OLD),
    ("-p sctp -m multiport ! --ports 443 -j DROP", OLD),
    ("-p udp -m udp ! --sport 443 -m conntrack --ctstate NEW -m multiport ! --dports 443 -j DROP", OLD),
    ("-p udp -m conntrack --ctproto 17 -m udp --sport 0:1023 -j DROP", BOTH),
    ("-p tcp -m conntrack --ctproto 6 -m tcp --tcp-flags SYN SYN -j DROP", BOTH),
    (f"-p tcp -m tcp --sport 1 {EVERY_THIRD} -m multiport --dports 2 -j DROP", BOTH),
    ("-p tcp -m tcp --sport 1 -m nfacct --nfacct-name a -m multiport --dports 2 -j DROP", OLD),
    ("-p tcp -m tcp --sport 1 -m recent --update -m multiport --dports 2 -j DROP", OLD),
)


@pytest.mark.parametrize(("rule", "by"), JOINED)
def test_what_nft_joins_is_seen(
    rule: str, by: frozenset[str], compilers: list[Nft], monkeypatch: pytest.MonkeyPatch
) -> None:
    ruleset = _rules("filter", "-A INPUT -m recent --set", f"-A FORWARD {rule}")
    _same(ruleset, compilers)
    monkeypatch.setattr(draft, "with_masks", tuple)
    found = check([lower(ruleset, level=0)], compilers).differences
    assert {difference.nft for difference in found} == by & {nft.name for nft in compilers}


def test_a_protocol_behind_a_counter_is_seen(compilers: list[Nft], monkeypatch: pytest.MonkeyPatch) -> None:
    ruleset = _rules("filter", f"-A FORWARD -p tcp {EVERY_THIRD} -m tcp --dport 2 -j DROP")
    _same(ruleset, compilers)
    monkeypatch.setattr(headers, "_counts", lambda _: False)
    assert check([lower(ruleset, level=0)], compilers).differences


def test_a_route_to_a_broadcast_address_is_seen(
    compilers: list[Nft], monkeypatch: pytest.MonkeyPatch
) -> None:
    for options in ("--invert", "--loose --invert"):
        ruleset = _rules("raw", f"-A PREROUTING -m rpfilter {options} -j DROP")
        _same(ruleset, compilers)
        with monkeypatch.context() as patch:
            patch.setattr(matches, "_NO_BROADCAST", " type . ip saddr != { unreachable . 1.0.0.0 }")
            assert check([lower(ruleset, level=0)], compilers).differences


def test_what_nft_refuses_is_seen(compilers: list[Nft], monkeypatch: pytest.MonkeyPatch) -> None:
    ask = "-A FORWARD -p tcp -m tcp --dport 53 -j"
    ruleset = _rules("filter", f"{ask} REJECT --reject-with tcp-reset", f"{ask} DROP")
    _same(ruleset, compilers)
    monkeypatch.setattr(containers, "_resets_behind_others", lambda *_: False)
    for nft in compilers:
        with pytest.raises(NftError, match="tcp reset"):
            check([lower(ruleset, level=1)], [nft])


def test_chains_that_are_too_deep_are_seen(compilers: list[Nft], monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"c{n}" for n in range(17)]
    calls = [f"-A {a} -p tcp -g {b}" for a, b in zip(["FORWARD", *names], names, strict=False)]
    program = lower(_rules("filter", *(f":{name} - [0:0]" for name in names), *calls), level=0)
    _load([program], compilers)
    monkeypatch.setattr(import_module("translate.nft.legalise.chains"), "MAX_DEPTH", 99)
    for nft in compilers:
        with pytest.raises(NftError, match="Too many links"):
            _load([program], [nft])


def test_a_variable_in_a_prefix_is_seen(compilers: list[Nft], monkeypatch: pytest.MonkeyPatch) -> None:
    program = lower(_rules("filter", '-A FORWARD -j LOG --log-prefix "$x$, $ \\\\"'), level=0)
    assert not check([program], compilers).differences
    monkeypatch.setattr(logging, "_VARIABLE", re.compile("(nothing)"))
    for nft in compilers:
        with pytest.raises(NftError, match="unknown identifier"):
            _load([program], [nft])
