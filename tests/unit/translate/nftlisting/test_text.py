"""Tables as nft prints them become commands in an order in which they load."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from translate.errors import ParseError
from translate.ir import Family
from translate.nftlisting import Form, GivenSet, read_listing

LISTING = """\
table ip a {
	comment "a table"
	map m {
		type inet_service : verdict
		elements = { 80 : goto c,
			81 comment "{" : drop }
	}

	counter n {
		packets 1 bytes 2
	}

	ct helper h {
		type "ftp" protocol tcp
		l3proto ip
	}

	set seen {
		type ipv4_addr
		size 10
		flags dynamic,timeout
		timeout 1m
		elements = { 10.0.0.1 expires 5s }
	}

	chain b { # handle 1
		type filter hook input priority filter; policy drop;
		tcp dport vmap @m
		update @seen { ip saddr } counter name "n" accept # handle 5
	}

	chain c {
		comment "empty"
	}
}
table inet other {
}
"""


def lines(text: str) -> list[str]:
    (script,) = read_listing(text, name="x.nft").scripts
    assert script.form is Form.TEXT
    assert len(script.origins) == script.text.count("\n")
    return script.text.splitlines()


def test_what_is_named_comes_before_what_names_it() -> None:
    assert lines(LISTING) == [
        'add table ip a { comment "a table"; }',
        "add table inet other",
        "add chain ip a b { type filter hook input priority filter; policy drop; }",
        'add chain ip a c { comment "empty"; }',
        "add counter ip a n { packets 1 bytes 2; }",
        'add ct helper ip a h { type "ftp" protocol tcp; l3proto ip; }',
        'add map ip a m { type inet_service : verdict; elements = { 80 : goto c, 81 comment "{" : drop }; }',
        "add set ip a seen { type ipv4_addr; size 10; flags dynamic,timeout; timeout 1m; }",
        "add rule ip a b tcp dport vmap @m",
        'add rule ip a b update @seen { ip saddr } counter name "n" accept',
    ]


def test_lines_know_where_they_come_from() -> None:
    (script,) = read_listing(LISTING, name="x.nft").scripts
    assert [origin.line for origin in script.origins] == [1, 36, 26, 32, 9, 13, 3, 18, 28, 29]
    assert script.origins[-1].text == 'update @seen { ip saddr } counter name "n" accept'


def test_sets_that_packets_fill_begin_empty_and_are_flushed() -> None:
    listing = read_listing(LISTING, name="x.nft")
    assert listing.filled == (GivenSet("ip", "a", "seen"),)
    assert listing.flush == "flush set ip a seen\n"
    assert "10.0.0.1" not in listing.scripts[0].text


def test_a_comment_fills_no_set() -> None:
    text = 'table ip a {\n\tchain b {\n\t\taccept comment "add @seen { ip saddr }"\n\t}\n}\n'
    assert read_listing(text, name="x.nft").filled == ()


def test_commands_stay_as_and_where_they_are() -> None:
    text = """\
#!/usr/sbin/nft -f
flush ruleset
define lan = { 10.0.0.0/8 }
add table kube
add chain ip kube c
table ip6 b {
	chain c {
		ip6 saddr ::1 drop
	}
}
add set ip kube s { type ipv4_addr ; flags dynamic ; }
add rule ip kube c add @s { ip saddr }
insert rule kube c update @t { ip saddr } comment "first"
"""
    assert lines(text) == [
        "define lan = { 10.0.0.0/8 }",
        "add table kube",
        "add chain ip kube c",
        "add table ip6 b",
        "add chain ip6 b c",
        "add rule ip6 b c ip6 saddr ::1 drop",
        "add set ip kube s { type ipv4_addr ; flags dynamic ; }",
        "add rule ip kube c add @s { ip saddr }",
        'insert rule kube c update @t { ip saddr } comment "first"',
    ]
    listing = read_listing(text, name="x.nft")
    assert listing.filled == (GivenSet("ip", "kube", "s"), GivenSet("ip", "kube", "t"))
    assert listing.families == ("ip", "ip6")


def test_devices_are_known_beforehand() -> None:
    text = """\
table netdev n {
	chain i {
		type filter hook ingress devices = { eth0, eth1 } priority filter; policy accept;
		comment "a device lo"
	}
}
table inet f {
	flowtable t {
		hook ingress priority filter
		devices = { "eth2" }
	}
}
"""
    devices = read_listing(text, name="x.nft").devices
    assert [(name, origin.line) for name, origin in devices] == [("eth0", 2), ("eth1", 2), ("eth2", 8)]


@pytest.mark.parametrize(
    ("families", "reached"),
    [("ip", (True, False)), ("ip6", (False, True)), ("inet", (True, True)), ("bridge", (False, False))],
)
def test_a_table_sees_packets_of_its_family(families: str, reached: tuple[bool, bool]) -> None:
    listing = read_listing(f"table {families} a {{\n}}\n", name="x.nft")
    assert tuple(listing.reaches(family) for family in (Family.IP, Family.IP6)) == reached


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", "x.nft", "no ruleset in this text"),
        ('table ip a {\n}\ninclude "more.nft"\n', "x.nft:3", "another file is included"),
        ("*nat\n:PREROUTING ACCEPT [0:0]\n", "x.nft:1", "'\\*nat' does not begin a table or a command"),
        ("list ruleset\n", "x.nft:1", "'list' does not begin a table or a command"),
        ("table ip a b {\n}\n", "x.nft:1", "does not begin a table"),
        (
            "table ip filter {\n\tchain FORWARD {\n\t\txt match recent counter accept\n\t}\n}\n",
            "x.nft:3",
            "a rule of iptables-nft, .* iptables-nft-save",
        ),
        (
            'table ip a {\n\tchain b {\n\t\tiifname { ""-"" } accept\n\t}\n}\n',
            "x.nft:3",
            "nft has lost the names of interfaces here",
        ),
        (
            'table ip a {\n\tchain b {\n\t\tiifname vmap { "b" : drop, ""/8 : accept }\n\t}\n}\n',
            "x.nft:3",
            "nft has lost the names of interfaces here",
        ),
    ],
)
def test_what_cannot_be_loaded_is_refused_at_its_line(text: str, place: str, message: str) -> None:
    with pytest.raises(ParseError, match=message) as caught:
        read_listing(text, name="x.nft")
    assert caught.value.diagnostics[0].origin.place == place


def test_a_table_that_nft_warns_of_is_refused() -> None:
    warning = "# Warning: table ip nat is managed by iptables-nft, do not touch!\n"
    text = f"{warning}table ip nat {{\n\tchain POSTROUTING {{\n\t\taccept\n\t}}\n}}\ntable ip6 nat {{\n}}\n"
    with pytest.raises(ParseError, match="a table of iptables-nft, as nft warns") as caught:
        read_listing(text, name="x.nft")
    assert [one.origin.line for one in caught.value.diagnostics] == [2]
    assert read_listing(text, name="x.nft", without={("ip", "nat")}).families == ("ip6",)


def test_every_refusal_is_told() -> None:
    text = "table ip a {\n\tchain b {\n\t\txt match recent\n\t\txt target LOG\n\t}\n}\nlist ruleset\n"
    with pytest.raises(ParseError) as caught:
        read_listing(text, name="x.nft")
    assert [one.origin.line for one in caught.value.diagnostics] == [3, 4, 7]


def test_tables_can_be_left_out_with_what_is_wrong_in_them() -> None:
    text = "table ip nat {\n\tchain c {\n\t\txt target LOG\n\t}\n}\ntable inet nat {\n}\ntable filter {\n}\n"
    listing = read_listing(text, name="x.nft", without={("ip", "nat"), ("ip", "filter")})
    assert [command.text for command in listing.commands] == ["add table inet nat"]


def test_a_chain_without_a_name_keeps_its_lines() -> None:
    text = """\
table ip a {
	chain b {
		iifname "eth0" jump {
			tcp dport { 80,
				81 } accept
			drop
		}
		accept comment "jump {"
	}
}
"""
    (script,) = read_listing(text, name="x.nft").scripts
    assert script.text.splitlines()[2:] == [
        'add rule ip a b iifname "eth0" jump {',
        "			tcp dport { 80,",
        "				81 } accept",
        "			drop",
        "		}",
        'add rule ip a b accept comment "jump {"',
    ]
    assert [origin.line for origin in script.origins] == [1, 2, 3, 3, 3, 3, 3, 8]


def test_rules_that_count_are_known() -> None:
    rules = (
        "limit rate 5/second accept",
        'log prefix "limit rate " accept',
        "update @s { ip saddr limit rate 1/second } drop",
        "counter packets 0 bytes 0 accept",
        "ct count over 5 drop",
    )
    text = "".join(f"\t\t{rule}\n" for rule in rules)
    listing = read_listing(f"table ip a {{\n\tchain b {{\n{text}\t}}\n}}\n", name="x.nft")
    assert [origin.line for origin in listing.counting] == [3, 5, 7]
    script = read_listing('add rule ip a b quota over 5 bytes drop comment "x"\n', name="x.nft")
    assert [origin.line for origin in script.counting] == [1]


def test_chains_that_look_like_iptables_nfts_are_doubtful() -> None:
    text = """\
table ip filter {
	chain FORWARD {
		type filter hook forward priority filter; policy accept;
		ct status dnat counter packets 0 bytes 0 drop
	}
	chain INPUT {
		type filter hook input priority filter; policy accept;
	}
	chain mine {
		accept
	}
}
"""
    assert [origin.line for origin in read_listing(text, name="x.nft").doubtful] == [2]


@given(st.text(alphabet='ab {};"#\\\n\t@=,', max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        listing = read_listing(f"table ip a {{\n{text}\n}}\n", name="x.nft")
    except ParseError:
        return
    for script in listing.scripts:
        assert len(script.origins) == script.text.count("\n")
        again = read_listing(script.text, name="again").scripts
        assert [one.text for one in again] == [script.text]


HOSTILE = sorted((Path(__file__).resolve().parents[3] / "corpus/hostile").glob("*.nft"))


@pytest.mark.parametrize("path", HOSTILE, ids=lambda path: path.name)
def test_files_that_are_included_inside_blocks_are_refused(path: Path) -> None:
    with pytest.raises(ParseError, match="another file is included") as caught:
        read_listing(path.read_text(), name="x.nft")
    assert all(d.origin.text[d.origin.column - 1 :].startswith("include") for d in caught.value.diagnostics)


@pytest.mark.parametrize(
    "text",
    [
        'table ip a { include"/x" }',
        'table ip a {\\\n include\\\n"/x" }',
        'define f = "/x"\ntable ip a { include $f }',
        "table ip a { include /x }",
        "table ip a { include '/x' }",
        'table ip a { chain b { accept;include "/x"; } }',
        'table ip a { chain b { jump { include "/x"; }; } }',
        'table ip a { set s { type ipv4_addr; elements = { 10.0.0.1 } ; include "/x" } }',
        'table ip a { ct helper h { include "/x"; } }',
        'table ip a { counter c { include "/x"; } }',
        'add rule ip a b accept; include "/x"',
        'add table ip a; include "/x"; add table ip b',
        'table ip a { comment "x" ; include "/x" ; }',
        'table ip a { # include\n include "/x"\n}',
        'flush ruleset; include "/x"',
        '\ufeffinclude "/x"\ntable ip a { }',
        'define x = { 5include "/x" }\n',
    ],
)
def test_a_file_is_included_nowhere(text: str) -> None:
    with pytest.raises(ParseError, match="another file is included"):
        read_listing(text, name="x.nft")


def test_the_word_may_stand_where_it_includes_nothing() -> None:
    text = """table ip a { # include "/x"
        comment "include \'/x\'"
        set include_s { type ipv4_addr; comment "; include"; }
        chain includes { }
        chain x.include { jump includes; }
    }
    """
    assert len(lines(text)) == 5
