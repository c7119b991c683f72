"""The transaction between two tables; that the kernel takes it is in tests/kernel/test_live_change.py."""

from __future__ import annotations

import pytest

from translate.ir import Family
from translate.nft import ChangeKind, NftOutput, emit
from translate.passes import lower
from translate.read import read_ruleset

_HEAD = "*nat\n:PREROUTING ACCEPT [0:0]\n"


def _output(*rules: str, chains: tuple[str, ...] = (), head: str = _HEAD, level: int = 2) -> NftOutput:
    declared = "".join(f":{name} - [0:0]\n" for name in chains)
    text = f"{head}{declared}{''.join(f'{r}{chr(10)}' for r in rules)}COMMIT\n"
    return emit(lower(read_ruleset(text.encode(), name="rules", family=Family.IP), level=level))


def _service(number: int, endpoint: str) -> str:
    return (
        f"-A PREROUTING -d 10.96.0.{number}/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination {endpoint}"
    )


def test_the_same_rules_need_no_transaction() -> None:
    old = _output(_service(1, "10.244.0.1:80"), _service(2, "10.244.0.2:80"))
    found = old.change_from(old)
    assert (found.kind, found.text) == (ChangeKind.NOTHING, "")


def test_a_line_number_alone_is_no_change() -> None:
    rules = (_service(1, "10.244.0.1:80"), _service(2, "10.244.0.2:80"))
    moved = _output(*rules, head=f"# one line more\n{_HEAD}")
    assert moved.change_from(_output(*rules)).kind is ChangeKind.NOTHING


def test_other_data_replace_one_element() -> None:
    old = _output(_service(1, "10.244.0.1:80"), _service(2, "10.244.0.2:80"))
    new = _output(_service(1, "10.244.0.1:80"), _service(2, "10.244.0.9:80"))
    found = new.change_from(old)
    assert (found.kind, found.added, found.deleted) == (ChangeKind.ELEMENTS, 1, 1)
    delete, add = found.text.splitlines()
    assert delete.startswith("delete element ip nfparity ")
    assert "10.96.0.2" in delete
    assert add.startswith("add element ip nfparity ")
    assert "10.244.0.9" in add
    assert "10.96.0.1 " not in found.text


def test_a_service_more_is_an_element_more() -> None:
    old = _output(_service(1, "10.244.0.1:80"), _service(2, "10.244.0.2:80"))
    new = _output(*(_service(n, f"10.244.0.{n}:80") for n in (1, 2, 3)))
    found = new.change_from(old)
    assert (found.kind, found.added, found.deleted) == (ChangeKind.ELEMENTS, 1, 0)


def test_a_chain_that_comes_is_declared_before_what_jumps_to_it() -> None:
    old = _output("-A PREROUTING -i eth0 -j ACCEPT")
    new = _output(
        "-A PREROUTING -i eth0 -j MORE", "-A MORE -s 10.0.0.0/8 -j ACCEPT", chains=("MORE",), level=0
    )
    found = new.change_from(old)
    assert found.kind is ChangeKind.STRUCTURE
    lines = [line.strip() for line in found.text.splitlines()]
    declared = lines.index("chain nat_MORE {")
    flushed = lines.index("flush chain ip nfparity nat_PREROUTING")
    assert (
        declared
        < flushed
        < lines.index('add rule ip nfparity nat_PREROUTING iifname "eth0" jump nat_MORE comment "line 4"')
    )
    back = old.change_from(new).text.splitlines()
    assert back[-2] == "delete chain ip nfparity nat_MORE"
    assert "flush chain ip nfparity nat_MORE" in back[:-2]


def test_another_policy_replaces_the_table() -> None:
    head = "*filter\n:FORWARD {} [0:0]\n"
    old, new = (
        _output("-A FORWARD -i eth0 -j ACCEPT", head=head.format(policy)) for policy in ("ACCEPT", "DROP")
    )
    found = new.change_from(old)
    assert (found.kind, found.text) == (ChangeKind.REPLACEMENT, new.text)


def test_tables_of_two_families_have_no_change() -> None:
    text = f"{_HEAD}COMMIT\n".encode()
    old, new = (
        emit(lower(read_ruleset(text, name="rules", family=family), level=2))
        for family in (Family.IP, Family.IP6)
    )
    with pytest.raises(ValueError, match="different tables"):
        new.change_from(old)


def test_counters_come_before_the_rules_that_count_and_go_after_them() -> None:
    plain, counting = _output("-A PREROUTING -j RETURN"), _output("-A PREROUTING -m nfacct --nfacct-name one")
    there, back = counting.change_from(plain).text, plain.change_from(counting).text
    assert there.index("counter nfacct_one {") < there.index("add rule")
    assert back.index("flush chain") < back.index("delete counter ip nfparity nfacct_one")
