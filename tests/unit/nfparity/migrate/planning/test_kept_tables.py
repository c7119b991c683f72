from __future__ import annotations

import pytest

from nfparity.migrate.planning.kept_tables import moved_text
from nfparity.migrate.planning.rules import read_rules
from translate.errors import ParseError, UnsupportedError
from translate.ir import Family, TableName

MANGLE = "*mangle\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING {}\nCOMMIT\n"
FILTER = "# Generated\n*filter\n:INPUT ACCEPT [0:0]\n-A INPUT {}\nCOMMIT\n# Completed\n"
UNDECIDED = "-p tcp -m string --algo bm --string x -j DROP"
UNREAD = "-m no-such-match -j DROP"
LISTED = "-m recent --name seen --rcheck --rsource -j DROP"


def read(text: str, *left: str) -> tuple[list[TableName], list[TableName], list[TableName]]:
    rules = read_rules(text, Family.IP, "rules", left, None)
    assert rules.text == text
    tried, moved, kept_rules = (
        [table.name for table in one.whole().tables] for one in (rules.tried, rules.moved, rules.kept_rules)
    )
    return tried, moved, kept_rules


def test_lines_stay_where_they_are() -> None:
    text = FILTER.format("-j DROP") + MANGLE.format("-j ACCEPT")
    assert moved_text(text, ("filter",)).splitlines() == [
        *("# Generated", "#", "#", "#", "#", "# Completed"),
        *MANGLE.format("-j ACCEPT").splitlines(),
    ]
    assert moved_text(text, ()) == text


def test_tables_that_stay_are_tried_where_they_can_be_read() -> None:
    text = MANGLE.format("-j ACCEPT") + FILTER.format("-j DROP")
    both = [TableName.MANGLE, TableName.FILTER]
    assert read(text) == (both, both, [])
    assert read(text, "filter") == (both, [TableName.MANGLE], [TableName.FILTER])
    assert read(text, "raw") == (both, both, [])


@pytest.mark.parametrize("rule", [UNDECIDED, UNREAD])
def test_kept_tables_that_cannot_be_simulated_are_left_out_of_the_trial(rule: str) -> None:
    text = FILTER.format(rule) + MANGLE.format("-j ACCEPT")
    assert read(text, "filter") == ([TableName.MANGLE], [TableName.MANGLE], [])


def test_replaced_tables_must_be_readable() -> None:
    text = FILTER.format(UNREAD) + MANGLE.format("-j ACCEPT")
    for left in ((), ("mangle",)):
        with pytest.raises(ParseError, match="rules:4"):
            read(text, *left)


def test_a_set_that_a_table_changes_that_stays_is_refused_with_the_line_that_asks_it() -> None:
    asks = MANGLE.format("-m set --match-set seen src -j ACCEPT")
    sets = "create seen hash:ip family inet\n"
    for option in ("--add-set seen src", "--del-set seen src"):
        with pytest.raises(UnsupportedError, match=r"rules:9.*a kept table changes the ipset seen"):
            read_rules(FILTER.format(f"-j SET {option}") + asks, Family.IP, "rules", ("filter",), sets)
    read_rules(FILTER.format("-j SET --add-set other src") + asks, Family.IP, "rules", ("filter",), sets)


def test_a_list_of_both_is_refused_with_its_line() -> None:
    text = FILTER.format(LISTED) + MANGLE.format("-m recent --name seen --set --rsource -j ACCEPT")
    read(text)
    with pytest.raises(UnsupportedError, match=r"rules:9.*-m recent list seen"):
        read(text, "filter")
    unread = text.replace("COMMIT\n# Completed", f"-A INPUT {UNREAD}\nCOMMIT\n# Completed")
    with pytest.raises(UnsupportedError, match=r"rules:10.*-m recent list seen"):
        read(unread, "filter")
    read(text.replace("--name seen --set", "--name other --set"), "filter")
