from __future__ import annotations

import pytest

from tests.unit.translate.helpers.rules import nft, program
from translate.errors import UnsupportedError
from translate.nft import emit

GUARD = "-m conntrack ! --ctstate RELATED,DNAT -m nfacct --nfacct-name drops -j DROP"


@pytest.mark.parametrize("level", [0, 1])
def test_an_account_counts_what_the_tests_before_it_let_through(level: int) -> None:
    rules = ("-A FORWARD -s 10.0.0.1/32 -m nfacct --nfacct-name one -d 10.0.0.2/32 -j DROP",)
    chains = nft("filter", *rules, level=level)
    assert chains["filter_FORWARD"] == [
        "ip saddr 10.0.0.1 ip daddr 10.0.0.2 counter name nfacct_one drop"  # base options come first
    ]


@pytest.mark.parametrize("level", [0, 1])
def test_a_rule_that_only_counts_stays(level: int) -> None:
    chains = nft("filter", "-A FORWARD -m nfacct --nfacct-name one", level=level)
    assert chains["filter_FORWARD"] == ["counter name nfacct_one"]


@pytest.mark.parametrize("level", [0, 1])
def test_counts_behind_a_negated_list_see_what_it_lets_through(level: int) -> None:
    chains = nft("filter", f"-A FORWARD {GUARD}", level=level)
    assert chains["filter_FORWARD"] == ["jump filter_FORWARD_2"]
    assert chains["filter_FORWARD_2"] == [
        "ct state related return",
        "ct status & dnat == dnat return",
        "counter name nfacct_drops drop",
    ]


def test_a_note_says_where_it_is_counted() -> None:
    output = emit(program("filter", f"-A FORWARD {GUARD}"))
    assert "counter nfacct_drops {" in output.text
    (note,) = output.notes
    assert note.feature == "nfacct"
    assert "the counter nfacct_drops counts instead" in note.text


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("LOG", "log level warn"),
        (
            'LOG --log-prefix "two words: " --log-level 6 --log-tcp-options --log-uid --log-ip-options',
            'log prefix "two words: " level info flags tcp options flags ip options flags skuid',
        ),
        ("LOG --log-macdecode --log-tcp-sequence", "log level warn flags tcp sequence flags ether"),
        ("NFLOG --nflog-group 5", "log group 5"),
        (
            "NFLOG --nflog-prefix a --nflog-size 64 --nflog-threshold 2",
            'log prefix "a" group 0 snaplen 64 queue-threshold 2',
        ),
        (r'LOG --log-prefix "C:\\ "', r'log prefix "C:\ " level warn'),
        ('LOG --log-prefix "$x, $_9$"', 'log prefix "$dollar_x, $dollar__9$dollar_" level warn'),
        ("NFLOG --nflog-prefix a$b-c", 'log prefix "a$dollar_b-c" group 0'),
    ],
)
def test_logs(options: str, text: str) -> None:
    assert nft("filter", f"-A FORWARD -j {options}")["filter_FORWARD"] == [text]


def test_a_prefix_that_nft_cannot_quote_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="log-prefix"):
        nft("filter", r'-A FORWARD -j LOG --log-prefix "say \"no\""')


def test_a_dollar_sign_in_a_prefix_is_no_variable_of_the_users() -> None:
    rules = [f"-A FORWARD -j LOG --log-prefix {prefix}" for prefix in ("$x", "$x$", "plain")]
    output = emit(program("filter", *rules))
    assert output.text.startswith('redefine dollar_x = "$x"\nredefine dollar_ = "$"\nadd table')
    assert 'log prefix "$dollar_x$dollar_" level warn' in output.text
    assert "define" not in emit(program("filter", rules[2])).text
    change = output.change_from(emit(program("filter", rules[2])))
    assert change.text.startswith('redefine dollar_x = "$x"\nredefine dollar_ = "$"\nflush chain')


@pytest.mark.parametrize("level", [0, 1])
def test_a_chain_that_logs_and_drops(level: int) -> None:
    rules = (
        "-A FORWARD -p udp -m udp --dport 5 -j refuse",
        '-A refuse -j LOG --log-prefix "no: "',
        "-A refuse -j DROP",
    )
    chains = nft("filter", *rules, level=level)
    written = chains["filter_FORWARD"] + chains.get("filter_refuse", [])
    assert any('log prefix "no: " level warn' in rule for rule in written)
