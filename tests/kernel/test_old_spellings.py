"""Old faults of the reader: each is put back, and a random text shows a difference from iptables.

Each fault changes the smallest part of the reader. The text of a stated seed is then read although iptables
refuses it, or refused although iptables takes it. The texts are of common extensions, so that a new
extension does not change them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.kernel.helpers.acceptance import SINCE_1_8_11, Compared, comparison
from tests.lab.random.texts import random_text
from translate.ir import Family, Interval, Nth
from translate.read.extensions import icmp, log, multiport, nat, statistic
from translate.read.extensions.declaration import parse_mark
from translate.read.rule import options
from translate.read.rule.base import BASE_ATTACHED, BASE_OPTIONS, RuleError
from translate.read.save.reader import _SaveReader
from translate.read.spelling import ports
from translate.read.spelling.errors import OptionError
from translate.read.tables import checks
from translate.read.tables.building import TableBuilder

Patch = pytest.MonkeyPatch


def ports_of_nat_are_split_at_the_hyphen(patch: Patch) -> None:
    def parsed(text: str, *, option: int, offset: int = 0) -> ports.NatPortRange:
        low, dash, high = text.partition("-")
        ends = [ports.parse_port(end, option=option) for end in ((low, high) if dash else (low,))]
        return ports.NatPortRange(Interval(min(ends), max(ends)))

    patch.setattr(nat, "parse_nat_ports", parsed)


def icmp_has_one_code(patch: Patch) -> None:
    right = icmp._bytes
    patch.setattr(icmp, "_bytes", lambda text, **where: right(text.replace(":", "to"), **where))


def counters_are_two_words(patch: Patch) -> None:
    right = options._counters

    def counters(draft: options.RuleDraft, at: int) -> int:
        if "," in draft.words[at + 1]:
            raise RuleError(at, "packets and bytes are two words")
        return right(draft, at)

    patch.setattr(options, "_counters", counters)


def a_table_is_declared_once(patch: Patch) -> None:
    def refused(self: Any, before: TableBuilder, origin: Any) -> TableBuilder:
        self._faults.report(origin, "the table is declared twice")
        return before

    patch.setattr(_SaveReader, "_replaced", refused)


def a_built_in_chain_is_declared_once(patch: Patch) -> None:
    right = TableBuilder.declare

    def declare(self: TableBuilder, *given: Any, **more: Any) -> None:
        origin, _, name, *_, faults = given
        if name in self.chains:
            faults.report(origin, "the chain is declared twice")
        right(self, *given, **more)

    patch.setattr(TableBuilder, "declare", declare)


def families_are_no_options_of_a_rule(patch: Patch) -> None:
    without = {word: name for word, name in BASE_OPTIONS.items() if name not in ("-4", "-6")}
    patch.setattr(options, "BASE_OPTIONS", without)


def unreachable_loops_are_refused(patch: Patch) -> None:
    patch.setattr(checks, "live_chains", lambda chains: {chain.name: chain.rules for chain in chains})


def ports_are_not_shifted(patch: Patch) -> None:
    right = ports.parse_nat_ports

    def parsed(text: str, **where: Any) -> ports.NatPortRange:
        if "/" in text:
            raise OptionError("there is no base", option=where["option"])
        return right(text, **where)

    patch.setattr(nat, "parse_nat_ports", parsed)


def long_prefixes_are_refused(patch: Patch) -> None:
    right = log._prefix

    def prefix(given: Any, name: str, longest: int) -> str:
        occurrence = given.find(name)
        if occurrence is not None and len(occurrence[1].arguments[0].encode()) > longest:
            raise OptionError("the prefix is too long", option=occurrence[0])
        return right(given, name, longest)

    patch.setattr(log, "_prefix", prefix)


def the_packet_may_be_omitted(patch: Patch) -> None:
    right = statistic._nth

    def nth(given: Any) -> Nth:
        every = given.find("--every")
        if given.find("--packet") is None and every is not None and every[1].negated:
            return Nth(every=parse_mark(every[1].arguments[0], option=every[0]), packet=0, negated=True)
        return right(given)

    patch.setattr(statistic, "_nth", nth)


def a_range_may_be_one_port(patch: Patch) -> None:
    right = multiport._list

    def one(part: str) -> str:
        low, _, high = part.partition(":")
        return low if low == high else part

    patch.setattr(
        multiport, "_list", lambda text, *, option: right(",".join(map(one, text.split(","))), option=option)
    )


def a_value_may_be_attached_to_any_option(patch: Patch) -> None:
    patch.setattr(options, "BASE_ATTACHED", frozenset({*BASE_ATTACHED, *BASE_OPTIONS.values()}))


@dataclass(frozen=True)
class Fault:
    """A fault of the reader, and the seed of a text that shows it; ``read``: the text is read wrongly."""

    put_back: Callable[[Patch], None]
    seed: int
    read: bool = False
    family: Family = Family.IP
    part: str = ""
    """Words of the text, where several faults have one cause."""


FAULTS = (
    Fault(ports_of_nat_are_split_at_the_hyphen, 6464, part="ftp-data"),
    Fault(icmp_has_one_code, 4227, part="255/0:255"),
    Fault(counters_are_two_words, 387, part="-c 1,2"),
    Fault(a_table_is_declared_once, 176),
    Fault(a_built_in_chain_is_declared_once, 95),
    Fault(families_are_no_options_of_a_rule, 118, part=" -4 "),
    Fault(families_are_no_options_of_a_rule, 91, part=" -6 ", family=Family.IP6),
    Fault(unreachable_loops_are_refused, 744),
    Fault(ports_are_not_shifted, 15370, part="1000-2000/1000"),
    Fault(long_prefixes_are_refused, 2092, part="x" * 30),
    Fault(ports_of_nat_are_split_at_the_hyphen, 1318, read=True, part="ftp-ssh"),
    Fault(ports_of_nat_are_split_at_the_hyphen, 12527, read=True, part="echo-ssh"),
    Fault(the_packet_may_be_omitted, 327, read=True),
    Fault(a_range_may_be_one_port, 19800, read=True, part="80:80"),
    Fault(a_value_may_be_attached_to_any_option, 411, read=True, part="--jump="),
)


@pytest.fixture(scope="module")
def families() -> Iterator[dict[Family, Compared]]:
    with comparison(Family.IP) as four, comparison(Family.IP6) as six:
        yield {Family.IP: four, Family.IP6: six}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.put_back.__name__} {fault.part}".strip())
def test_a_random_text_shows_an_old_fault(
    fault: Fault, families: dict[Family, Compared], monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = families[fault.family]
    compared.disagreements.clear()
    text = random_text(fault.seed, fault.family)
    assert fault.part in text
    if compared.later and SINCE_1_8_11.search(text):
        pytest.skip("this iptables accepts the text, which 1.8.9 refuses")
    compared.compare(text)
    assert compared.disagreements == []
    fault.put_back(monkeypatch)
    compared.compare(text)
    (disagreement,) = compared.disagreements
    assert disagreement.startswith("mis-accepted" if fault.read else "mis-refused")
