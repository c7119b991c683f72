"""Listings and dumps are found on a page of prose, and kept apart where they contradict each other."""

# ruff: noqa: E501  # listings are wide

from __future__ import annotations

import pytest

from translate.errors import ParseError
from translate.ir import Family, Hidden, Ruleset, TableName
from translate.read import read_pieces

_COLUMNS = "target     prot opt source               destination\n"
_ROW = "X  all  --  anywhere             anywhere\n"


def _pieces(text: str, **given) -> tuple[Ruleset, ...]:
    return read_pieces(text.encode(), name="page", **given)


def _shown(ruleset: Ruleset) -> dict[str, int]:
    return {c.name: len(c.rules) for c in ruleset.tables[0].chains if not c.is_hidden}


def test_the_command_names_the_table_and_the_family():
    page = (
        f"Look:\n$ ip6tables -t nat -L KUBE -n\nChain KUBE (1 references)\n{_COLUMNS}{_ROW}\nThat is all.\n"
    )
    (ruleset,) = _pieces(page)
    assert (ruleset.tables[0].name, ruleset.family) == (TableName.NAT, Family.IP6)
    assert _shown(ruleset) == {"KUBE": 1}


def test_prose_ends_a_listing():
    page = f"Chain A (1 references)\n{_COLUMNS}{_ROW}The rule above jumps.\n```\nChain B (1 references)\n{_ROW}...\n```\n"
    (ruleset,) = _pieces(page, table=TableName.NAT)
    assert _shown(ruleset) == {"A": 1, "B": 2}
    (left_out,) = ruleset.tables[0].chain("B").rules[1].unknown
    assert (left_out.reason, left_out.hides) == ("rules are left out here", Hidden.RULES)


def test_the_same_chain_twice_is_read_once():
    listing = f"Chain A (1 references)\n{_COLUMNS}{_ROW}\n"
    assert len(_pieces(f"{listing}\nagain:\n{listing}", table=TableName.NAT)) == 1


def test_contradicting_listings_are_two_pieces():
    one = f"Chain A (1 references)\n{_COLUMNS}{_ROW}"
    assert len(_pieces(f"{one}\nlater:\n{one}{_ROW}", table=TableName.NAT)) == 2


def test_listings_of_two_tables_are_two_pieces():
    one = f"Chain A (1 references)\n{_COLUMNS}{_ROW}\n"
    pieces = _pieces(f"# iptables -t nat -L A\n{one}# iptables -t raw -L A\n{one}")
    assert [piece.tables[0].name for piece in pieces] == [TableName.NAT, TableName.RAW]


def test_rules_without_a_header_are_of_an_unknown_chain():
    (ruleset,) = _pieces(f"as in\n\n{_ROW}\n", table=TableName.NAT)
    assert _shown(ruleset) == {"?3": 1}
    assert "line 3" in ruleset.unknown[0]


def test_a_dump_and_a_cut_dump():
    page = "text\n*nat\n:X - [0:0]\n-A X -j RETURN\nCOMMIT\nmore text\n*nat\n:Y - [0:0]\n"
    whole, cut = _pieces(page)
    assert (whole.unknown, list(whole.unknowns())) == ((), [])
    assert cut.tables[0].chain("Y").is_hidden
    assert cut.unknown == ("table nat is cut off after line 8",)


@pytest.mark.parametrize("line", ["### The `nat` table", "# iptables -t nat -S"])
def test_a_comment_after_a_dump_may_name_the_table_of_the_rules_below_it(line):
    page = f"*raw\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n# Completed\n\n{line}\n\n-P OUTPUT ACCEPT\n-A OUTPUT -j RETURN\n"
    dump, rules = _pieces(page)
    assert [one.tables[0].name for one in (dump, rules)] == [TableName.RAW, TableName.NAT]
    assert (_shown(dump), _shown(rules)) == ({"OUTPUT": 0}, {"OUTPUT": 1})


def test_a_remark_about_a_table_is_part_of_the_dump():
    remark = "# Table `nat' is incompatible, use 'nft' tool."
    page = f"*raw\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n{remark}\n*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n"
    (ruleset,) = _pieces(page)
    assert [table.name for table in ruleset.tables] == [TableName.RAW, TableName.FILTER]
    assert any("table nat has rules" in one for one in ruleset.unknown)


def test_rules_without_a_dump():
    page = "the rules:\n\n-A KUBE -s 10.0.0.1/32 -j RETURN\n-A KUBE -j KUBE-SEP\n\nend\n"
    (ruleset,) = _pieces(page, table=TableName.NAT)
    assert len(ruleset.tables[0].chain("KUBE").rules) == 3
    assert ruleset.tables[0].chain("KUBE-SEP").is_hidden


def _listing(*chains: str) -> str:
    return "\n".join(f"    Chain {chain} (policy ACCEPT)\n    {_COLUMNS}    {_ROW}" for chain in chains)


_BASE = "INPUT", "FORWARD", "OUTPUT"


@pytest.mark.parametrize(
    ("line", "table"),
    [
        ("Table nat:", TableName.NAT),
        ("And the corresponding nat table:", TableName.NAT),
        ("### The `nat` table", TableName.NAT),
        ("<summary>Mangle table</summary>", TableName.MANGLE),
        ("`iptables -t raw -L`", TableName.RAW),
    ],
)
def test_a_line_that_leads_to_a_listing_names_its_table(line, table):
    page = f"Look:\n\n{_listing(*_BASE)}\n{line}\n\n{_listing('PREROUTING', 'OUTPUT')}"
    first, second = _pieces(page)
    assert [one.tables[0].name for one in (first, second)] == [TableName.FILTER, table]
    assert list(_shown(first)) == list(_BASE)
    stated = f"line 15 says that this is table {table}"
    assert (stated in second.unknown) is not line.startswith("`iptables")


def test_what_prose_says_of_another_table_parts_listings():
    page = f"{_listing(*_BASE)}\nIn the nat table there is one more thing, of which later.\n{_listing('PREROUTING')}"
    (first,) = _pieces(page)
    assert list(_shown(first)) == list(_BASE)
    assert first.unknown[-1] == ("lines 14 to 16 are not read: line 14: the listing does not show its table")


def test_a_table_that_cannot_hold_a_listing_is_not_believed():
    page = f"Table nat:\n{_listing('FORWARD')}\nTable filter:\n{_listing('INPUT')}"
    (ruleset,) = _pieces(page)
    assert ruleset.tables[0].name is TableName.FILTER
    assert ruleset.unknown[-1].endswith("line 2: table nat cannot have all of the listed rules")


def test_a_listing_below_a_table_that_is_not_read():
    with pytest.raises(ParseError, match="table broute is not read"):
        _pieces(f"Table broute:\n{_listing('INPUT')}")


def test_indented_rules_and_dumps():
    page = "the commands:\n\n    -P INPUT DROP\n    -N X\n    -A X -j RETURN\n\nor\n\n\t*nat\n\t:X - [0:0]\n\tCOMMIT\n"
    rules, dump = _pieces(page)
    assert (_shown(rules), rules.tables[0].name) == ({"INPUT": 0, "X": 1}, TableName.FILTER)
    assert (_shown(dump), dump.tables[0].name) == ({"X": 0}, TableName.NAT)


@pytest.mark.parametrize(
    ("rules", "table"),
    [
        ("-P FORWARD DROP\n-P PREROUTING ACCEPT", TableName.MANGLE),
        ("-A X -j DNAT --to-destination 10.0.0.1", TableName.NAT),
        ("-P INPUT ACCEPT", TableName.FILTER),
    ],
)
def test_rules_show_their_table(rules, table):
    (ruleset,) = _pieces(f"{rules}\n")
    assert ruleset.tables[0].name is table
    assert any("filter is assumed" in one for one in ruleset.unknown) is (table is TableName.FILTER)


def test_rules_of_which_no_table_is_certain_are_refused():
    with pytest.raises(ParseError, match="these rules do not show their table"):
        _pieces("-A PREROUTING -j RETURN\n")


def test_rows_that_cannot_be_read_are_unknown_and_the_others_read():
    bad = "ACCEPT  tcp  --  anywhere  anywhere  tcp dpt:nosuch\n"
    odd = "ACCEPT  tcp  --  anywhere  anywhere  of no match at all\n"
    (ruleset,) = _pieces(f"Chain A (1 references)\n{_COLUMNS}{_ROW}{bad}{odd}{_ROW}", table=TableName.NAT)
    rules = ruleset.tables[0].chain("A").rules
    assert [[one.hides for one in rule.unknown if one.hides is Hidden.RULES] for rule in rules] == [
        [],
        [Hidden.RULES],
        [Hidden.RULES],
        [],
    ]
    assert [one.partition(":")[0] for one in ruleset.unknown[:2]] == [
        "line 5 is not read",
        "line 4 is not read",
    ]


def test_rules_that_cannot_be_read_are_unknown_and_the_others_read():
    page = "*filter\n:X - [0:0]\n-A X -m nosuch -j DROP\n[1:2] -A X -s nowhere\n-A X -j DROP\nCOMMIT\n"
    (ruleset,) = _pieces(page)
    assert [bool(rule.unknown) for rule in ruleset.tables[0].chain("X").rules] == [True, True, False]
    assert ruleset.unknown == (
        'line 3 is not read: unknown match "nosuch"',
        'line 4 is not read: "nowhere" is not an IPv4 address',
    )


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("", "no listing and no dump"),
        ("$ iptables -t nat -L <chain-name>\n- a list\n* another\n", "no listing and no dump"),
        ("*nat\n:X - [0:0]\n-A X -s nowhere -j RETURN\nCOMMIT\n", "is not an IPv4 address"),
        (f"Chain A (1 references)\n{_COLUMNS}X tcp -- anywhere anywhere tcp dpt:nosuch\n", 'unknown port "nosuch"'),
        (f"Chain PREROUTING (policy ACCEPT)\n{_COLUMNS}{_ROW}", "name it with --table"),
    ],
)  # fmt: skip
def test_bad_pages(page, message):
    with pytest.raises(ParseError) as caught:
        _pieces(page)
    assert any(message in d.render() for d in caught.value.diagnostics)
