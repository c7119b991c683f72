"""Texts that are reduced to the same do the same; those that do not are not."""

from __future__ import annotations

import pytest

from tests.lab.mutation.reduction import reduced

TEXT = """\
table ip nfparity {
	set OPEN {
		typeof ip daddr . meta l4proto . th dport
		elements = {
			10.0.0.1 . tcp . 80 comment "line 1",
			10.0.0.2 . tcp . 443 comment "line 2",
		}
	}

	set BOTH {
		typeof meta l4proto . th dport
		elements = {
			tcp . 22,
			udp . 22,
		}
	}

	set NONE {
		typeof ip daddr
	}

	chain filter_INPUT {
		comment "filter INPUT"
		type filter hook input priority 0; policy accept;
		jump filter_GUARD comment "line 3"
		jump filter_LAST comment "line 4"
	}

	chain filter_GUARD {
		ip daddr . meta l4proto . th dport @OPEN return comment "line 5"
		meta l4proto tcp meta l4proto . th dport @BOTH return comment "line 6"
		ip daddr @NONE return comment "line 7"
		ip saddr 198.51.100.0/24 drop comment "line 8"
	}

	chain filter_LAST {
		tcp dport 22 accept comment "line 9"
		meta mark & 0x1 == 0x1 accept comment "line 10"
	}

	chain filter_NOBODY {
		drop comment "line 11"
	}
}
"""


def changed(before: str, after: str) -> str:
    assert TEXT.count(before) == 1
    return TEXT.replace(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("\t\t\tudp . 22,\n", "", id="an element of another protocol than every rule asks"),
        pytest.param("udp . 22,", "tcp . 22,", id="an element that is there before"),
        pytest.param("@OPEN return", "@OPEN accept", id="a return to what only accepts"),
        pytest.param("@NONE return", "@NONE accept", id="an empty set"),
        pytest.param('\t\tip daddr @NONE return comment "line 7"\n', "", id="without the empty set"),
        pytest.param("tcp dport 22 accept", "udp dport 23 accept", id="an accept at the end"),
        pytest.param('\t\tjump filter_LAST comment "line 4"\n', "", id="a call of what only accepts"),
        pytest.param("jump filter_LAST", "accept", id="whether by a call or not"),
        pytest.param('drop comment "line 11"', "accept", id="a chain that nobody calls"),
        pytest.param(
            "ip daddr @NONE return", "ip daddr . meta l4proto . th dport @OPEN drop", id="what has been ended"
        ),
    ],
)
def test_the_same(before: str, after: str) -> None:
    assert reduced(changed(before, after)) == reduced(TEXT)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("10.0.0.1 . tcp . 80", "10.0.0.1 . tcp . 81", id="an element"),
        pytest.param("@OPEN return", "@OPEN drop", id="a verdict"),
        pytest.param("meta l4proto tcp meta", "meta", id="a protocol that the set does not imply"),
        pytest.param("th dport @OPEN", "th dport != @OPEN", id="a set, negated"),
        pytest.param("ip daddr @NONE return", "ip daddr != @NONE return", id="an empty set, negated"),
        pytest.param("ip daddr @NONE return", "return", id="the test of an empty set"),
        pytest.param("100.0/24", "100.0/25", id="a prefix"),
        pytest.param("policy accept", "policy drop", id="the policy"),
        pytest.param("hook input", "hook forward", id="the hook"),
        pytest.param("\t\tjump filter_GUARD", "\t\tct state new jump filter_GUARD", id="a call"),
        pytest.param("0x1 accept", "0x1 drop", id="what follows"),
    ],
)
def test_not_the_same(before: str, after: str) -> None:
    assert reduced(changed(before, after)) != reduced(TEXT)


def test_a_return_matters_where_something_follows() -> None:
    text = changed("meta mark & 0x1 == 0x1 accept", "ip saddr 192.0.2.1 drop")
    assert reduced(text) != reduced(text.replace("@OPEN return", "@OPEN accept"))


def test_what_follows_for_other_packets_does_not_count() -> None:
    text = changed("meta mark & 0x1 == 0x1 accept", "udp dport 53 drop")
    assert reduced(text) == reduced(text.replace("@OPEN return", "@OPEN accept"))
    text = changed("meta mark & 0x1 == 0x1 accept", "tcp dport 80 drop")
    assert reduced(text) != reduced(text.replace("@OPEN return", "@OPEN accept"))


def test_a_list_that_packets_fill_is_not_empty() -> None:
    text = changed("0x1 == 0x1 accept", "0x1 == 0x1 update @NONE { ip saddr }")
    assert reduced(text) != reduced(text.replace("ip daddr @NONE return", "ip daddr @NONE accept"))


def test_a_mark_is_left_to_the_packets() -> None:
    """It may change between two rules."""
    text = changed("meta mark & 0x1 == 0x1 accept", "meta mark & 0x1 == 0x1 drop")
    again = text.replace("tcp dport 22 accept", "meta mark & 0x1 == 0x1 accept")
    assert reduced(again) != reduced(text)


def test_a_map_of_verdicts_decides_by_its_elements() -> None:
    choice = "\tmap CHOICE {\n\t\telements = {\n\t\t\ttcp . 25 : jump filter_LAST,\n\t\t}\n\t}\n\n"
    text = changed("jump filter_LAST", "meta l4proto . th dport vmap @CHOICE")
    text = text.replace("\tset NONE", choice + "\tset NONE")
    assert reduced(text) == reduced(text.replace("tcp . 25 : jump filter_LAST", "tcp . 26 : accept"))
    assert reduced(text) != reduced(text.replace("tcp . 25 : jump filter_LAST", "tcp . 25 : drop"))


def test_a_chain_counts_whatever_is_asked_where_it_is_called() -> None:
    """By chance, or by what is not known here."""
    text = changed('drop comment "line 11"', "ip saddr 192.0.2.1 drop")
    for asked in ("numgen random mod 3 < 1", "something unheard of"):
        calls = text.replace("ip daddr @NONE return", f"{asked} jump filter_NOBODY")
        assert reduced(calls) != reduced(calls.replace("192.0.2.1 drop", "192.0.2.2 drop"))
        assert reduced(calls) != reduced(calls.replace("192.0.2.1 drop", "192.0.2.1 accept"))
    by_map = text.replace("ip daddr @NONE return", "numgen random mod 2 vmap @DRAWN")
    by_map = by_map.replace("\tset NONE", "\tmap DRAWN {\n\t\t\t0 : jump filter_NOBODY,\n\t}\n\tset NONE")
    assert reduced(by_map) != reduced(by_map.replace("192.0.2.1 drop", "192.0.2.2 drop"))


MARKS = """\
table ip nfparity {
	chain nat_PREROUTING {
		type nat hook prerouting priority -100; policy accept;
		tcp dport 80 jump nat_EXT
		tcp dport 81 jump nat_SVC
	}

	chain nat_EXT {
		meta mark set meta mark | 0x4000
		jump nat_SVC
	}

	chain nat_SVC {
		ip saddr . meta l4proto . th dport @PIN meta mark set meta mark | 0x4000
		dnat to 10.0.0.1:80
	}

	set PIN {
		10.0.0.1 . tcp . 80,
		10.0.0.1 . tcp . 81,
	}
}
"""


def test_what_is_marked_on_every_way_is_marked_once() -> None:
    fewer = MARKS.replace("\t\t10.0.0.1 . tcp . 80,\n", "")
    assert reduced(fewer) == reduced(MARKS)
    assert reduced(MARKS.replace("\t\t10.0.0.1 . tcp . 81,\n", "")) != reduced(MARKS)
    unmarked = MARKS.replace("\t\tmeta mark set meta mark | 0x4000\n", "")
    assert reduced(unmarked) != reduced(unmarked.replace("\t\t10.0.0.1 . tcp . 80,\n", ""))
    other_bit = MARKS.replace("| 0x4000\n\t\tjump", "| 0x2000\n\t\tjump")
    assert reduced(other_bit) != reduced(other_bit.replace("\t\t10.0.0.1 . tcp . 80,\n", ""))


def test_a_mark_that_may_be_taken_away_is_not_counted_on() -> None:
    text = MARKS.replace("\t\tjump nat_SVC", "\t\tmeta mark set meta mark ^ 0x4000\n\t\tjump nat_SVC")
    assert reduced(text) != reduced(text.replace("\t\t10.0.0.1 . tcp . 80,\n", ""))


def test_a_packet_has_one_state() -> None:
    text = changed("meta mark & 0x1 == 0x1 accept", "ct state new drop")
    known = text.replace("ip daddr @NONE return", "ct state established,related return")
    assert reduced(known) == reduced(
        known.replace("established,related return", "established,related accept")
    )
    assert reduced(known) != reduced(known.replace("established,related return", "established,new accept"))


def test_a_loop_of_calls_is_not_reduced() -> None:
    text = changed('\t\tmeta mark & 0x1 == 0x1 accept comment "line 10"', "\t\tip daddr vmap @AGAIN")
    elements = "".join(f"\t\t\t10.0.{i}.0/24 : goto filter_LAST,\n" for i in range(99))
    again = "\tmap AGAIN {\n\t\ttypeof ip daddr : verdict\n\t\telements = {\n" + elements + "\t\t}\n\t}\n\n"
    looped = text.replace("\tset NONE", again + "\tset NONE")
    assert looped != text
    assert "filter_NOBODY" in reduced(looped)
    assert reduced(looped) != reduced(TEXT)


def test_maps_with_equal_elements_are_the_same() -> None:
    def with_map(name: str, verdict: str) -> str:
        elements = f'\t\t\t0 comment "{name}" : jump filter_LAST,\n\t\t\t1 : {verdict},\n'
        return f"\tmap {name} {{\n\t\telements = {{\n{elements}\t\t}}\n\t}}\n\n"

    maps = with_map("ONE", "drop") + with_map("TWO", "drop") + with_map("OTHER", "accept")
    text = changed("\tset NONE", maps + "\tset NONE")
    text = text.replace("ip daddr @NONE return", "numgen random mod 2 vmap @ONE")
    assert reduced(text) == reduced(text.replace("vmap @ONE", "vmap @TWO"))
    assert reduced(text) != reduced(text.replace("vmap @ONE", "vmap @OTHER"))
