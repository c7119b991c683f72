from __future__ import annotations

import pytest

from tests.unit.translate.helpers.rules import nft, program
from translate.errors import UnsupportedError
from translate.nft import TABLE, emit

GUARD = "-m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT"
EITHER = "-m conntrack --ctstate NEW,DNAT"


def test_one_transaction_replaces_the_owned_table_and_no_other() -> None:
    output = emit(program("filter", "-A INPUT -j DROP"))
    assert output.text.startswith(f"add table ip {TABLE}\ndelete table ip {TABLE}\ntable ip {TABLE} {{\n")
    assert "flush" not in output.text
    assert output.text.count("table ") == 3
    assert (output.table, output.delete) == (TABLE, f"delete table ip {TABLE}\n")


def test_base_chains_stand_where_x_tables_has_them() -> None:
    text = "".join(emit(program(table)).text for table in ("raw", "mangle", "nat", "filter"))
    hooks = [line.strip() for line in text.splitlines() if "hook" in line]
    assert "type filter hook prerouting priority -300; policy accept;" in hooks
    assert "type route hook output priority -150; policy accept;" in hooks
    assert "type filter hook forward priority -150; policy accept;" in hooks
    assert "type nat hook prerouting priority -100; policy accept;" in hooks
    assert "type nat hook input priority 100; policy accept;" in hooks
    assert "type filter hook output priority 0; policy accept;" in hooks
    assert len(hooks) == 2 + 5 + 4 + 3


def test_kubelets_guard_is_a_chain_that_returns() -> None:
    found = nft("filter", "-A INPUT -j KUBE-FIREWALL", f"-A KUBE-FIREWALL -s 10.0.0.1/32 {GUARD} -j DROP")
    assert found["filter_KUBE-FIREWALL"] == ["ip saddr 10.0.0.1 jump filter_KUBE-FIREWALL_2"]
    assert found["filter_KUBE-FIREWALL_2"] == [
        "ct state established,related return",
        "ct status & dnat == dnat return",
        "drop",
    ]


def test_alternatives_act_once_and_come_back_behind_the_rule() -> None:
    found = nft("filter", f"-A INPUT -p tcp {EITHER} -j other", "-A other -j DROP")
    assert found["filter_INPUT"] == ["meta l4proto tcp jump filter_INPUT_2"]
    # goto, not jump: the second alternative must not act when the first did.
    assert found["filter_INPUT_2"] == [
        "ct state new goto filter_other",
        "ct status & dnat == dnat goto filter_other",
    ]


def test_alternatives_with_an_effect_return_after_it() -> None:
    found = nft("mangle", f"-A INPUT {EITHER} -j MARK --set-xmark 0x1/0x0")
    assert found["mangle_INPUT_2"] == [
        "ct state new meta mark set meta mark ^ 0x1 return",
        "ct status & dnat == dnat meta mark set meta mark ^ 0x1 return",
    ]


def test_a_return_cannot_stand_in_another_chain() -> None:
    found = nft(
        "filter", "-A INPUT -j user", f"-A user -p tcp {EITHER} -j RETURN", f"-A user {GUARD} -j RETURN"
    )
    assert found["filter_user"] == [
        "meta l4proto tcp ct state new return",
        "meta l4proto tcp ct status & dnat == dnat return",
        "ct state invalid,new,untracked ct status & dnat != dnat return",
        # without a conntrack entry there is no status, and the negated list holds
        "ct state invalid,untracked return",
    ]


def test_what_draws_once_must_not_draw_per_alternative() -> None:
    draw = "-m statistic --mode random --probability 0.50000000000"
    found = nft("filter", f"-A INPUT {draw} {EITHER} -j DROP")
    assert found["filter_INPUT"] == ["numgen random mod 2147483648 < 1073741824 jump filter_INPUT_2"]
    found = nft("filter", f"-A INPUT {EITHER} {draw} -j DROP")
    assert found["filter_INPUT_2"] == [
        "ct state new goto filter_INPUT_3",
        "ct status & dnat == dnat goto filter_INPUT_3",
    ]
    assert found["filter_INPUT_3"] == ["numgen random mod 2147483648 < 1073741824 drop"]
    found = nft("filter", f"-A INPUT {GUARD} {draw} -j DROP")
    assert found["filter_INPUT_2"] == [
        "ct state established,related return",
        "ct status & dnat == dnat return",
        "numgen random mod 2147483648 < 1073741824 drop",
    ]


def test_what_draws_once_and_returns_has_what_follows_in_a_chain() -> None:
    draw = "-m statistic --mode random --probability 0.50000000000"
    found = nft("filter", "-A INPUT -j user", f"-A user {draw} {EITHER} -j RETURN", "-A user -j DROP")
    assert found["filter_user"] == [
        "numgen random mod 2147483648 < 1073741824 goto filter_user_2",
        "goto filter_user_3",
    ]
    assert found["filter_user_2"] == [
        "ct state new goto filter_user_4",
        "ct status & dnat == dnat goto filter_user_4",
        "goto filter_user_3",
    ]
    assert found["filter_user_4"][0] == "return"
    assert found["filter_user_3"] == ["drop"]


def test_ports_behind_what_draws_keep_their_protocol() -> None:
    """A reset behind a match on all protocols with ports does not load."""
    draw = "-m statistic --mode nth --every 2 --packet 0"
    reset = "-j REJECT --reject-with tcp-reset"
    found = nft("filter", f"-A INPUT -p tcp {EITHER} {draw} -m tcp --dport 80 {reset}")
    assert found["filter_INPUT_3"] == [
        "meta l4proto tcp numgen inc mod 2 == 0 tcp dport 80 reject with tcp reset"
    ]


def test_ports_of_alternatives_keep_their_protocol() -> None:
    found = nft("filter", "-A INPUT -p udp -m multiport --ports 53 -j DROP")
    assert found["filter_INPUT_2"] == ["udp sport 53 drop", "udp dport 53 drop"]


def test_a_lookup_is_a_named_verdict_map() -> None:
    found = nft(
        "filter",
        "-A FORWARD -d 10.0.0.1/32 -p tcp -m tcp --dport 80 -j ACCEPT",
        "-A FORWARD -d 10.0.0.2/32 -p udp -m udp --dport 53 -j user",
        "-A user -s 10.0.0.9/32 -j DROP",
        level=1,
    )
    assert found["filter_FORWARD"] == ["ip daddr . meta l4proto . th dport vmap @filter_FORWARD_verdicts"]
    assert found["filter_FORWARD_verdicts"] == [
        "typeof ip daddr . meta l4proto . th dport : verdict",
        "10.0.0.1 . tcp . 80 : accept",
        "10.0.0.2 . udp . 53 : jump filter_user",
    ]


def test_actions_that_no_map_holds_get_a_chain() -> None:
    rules = [
        f"-A PREROUTING -p {p} -m {p} --dport 53 -j DNAT --to-destination 10.0.0.3:{to}"
        for p, to in (("tcp", "53"), ("udp", "53-54"))
    ]
    found = nft("nat", *rules, level=1)
    assert found["nat_PREROUTING"] == ["meta l4proto . th dport vmap @nat_PREROUTING_verdicts"]
    assert [found[f"nat_PREROUTING_{n}"] for n in (2, 3)] == [
        ["meta l4proto tcp dnat to 10.0.0.3:53"],
        ["meta l4proto udp dnat to 10.0.0.3:53-54"],
    ]


def test_a_lookup_that_does_the_same_to_all_is_a_set() -> None:
    rules = [
        f"-A PREROUTING -p {p} -m {p} --dport 53 -j DNAT --to-destination 10.0.0.3:53" for p in ("tcp", "udp")
    ]
    found = nft("nat", *rules, level=1)
    # The port asks for a match on the protocol besides the one in the key.
    assert found["nat_PREROUTING"] == [
        "meta l4proto { tcp, udp } meta l4proto . th dport @nat_PREROUTING_keys dnat to 10.0.0.3:53"
    ]
    assert [line.removesuffix(" : ") for line in found["nat_PREROUTING_keys"]] == [
        "typeof meta l4proto . th dport",
        "tcp . 53",
        "udp . 53",
    ]


def test_a_reset_stands_where_nft_can_add_the_protocol() -> None:
    rules = [
        f"-A FORWARD -p tcp -m tcp --dport 53 -j {t}" for t in ("REJECT --reject-with tcp-reset", "DROP")
    ]
    found = nft("filter", *rules, level=1)
    assert found["filter_FORWARD"] == [
        "meta l4proto { tcp, udp, dccp, sctp, udplite } th dport 53 "
        "meta l4proto vmap @filter_FORWARD_verdicts"
    ]
    assert found["filter_FORWARD_2"] == ["reject with tcp reset"]


def test_a_lookup_of_dnat_targets_is_a_data_map() -> None:
    rules = [
        f"-A PREROUTING -d 10.0.0.{n}/32 -p tcp -m tcp --dport 8{n}"
        f" -j DNAT --to-destination 10.1.0.{n}:80 --random"
        for n in (1, 2)
    ]
    found = nft("nat", *rules, level=1)
    assert found["nat_PREROUTING"] == [
        "dnat ip to ip daddr . meta l4proto . th dport map @nat_PREROUTING_targets random"
    ]
    assert found["nat_PREROUTING_targets"] == [
        "typeof ip daddr . meta l4proto . th dport : ip daddr . th dport",
        "10.0.0.1 . tcp . 81 : 10.1.0.1 . 80",
        "10.0.0.2 . tcp . 82 : 10.1.0.2 . 80",
    ]


def test_addresses_alone_make_a_data_map_of_addresses() -> None:
    rules = [f"-A PREROUTING -d 10.0.0.{n}/32 -j DNAT --to-destination 10.1.0.{n}" for n in (1, 2)]
    found = nft("nat", *rules, level=1)
    assert found["nat_PREROUTING"] == ["dnat ip to ip daddr map @nat_PREROUTING_targets"]
    assert found["nat_PREROUTING_targets"][0] == "typeof ip daddr : ip daddr"


def test_an_effect_that_returns_leaves_the_lookups_own_chain() -> None:
    # Inlined, a goto to a chain of effects is those effects and a return from *this* chain.
    found = nft(
        "mangle",
        "-A INPUT -j user",
        "-A user -s 10.0.0.1/32 -g mark",
        "-A user -s 10.0.0.2/32 -j DROP",
        "-A mark -j MARK --set-xmark 0x1/0x0",
        level=1,
    )
    assert found["mangle_user_verdicts"][1:] == ["10.0.0.1 : goto mangle_user_2", "10.0.0.2 : drop"]
    assert found["mangle_user_2"] == ["meta mark set meta mark ^ 0x1 return"]


def test_wide_keys_make_an_interval_map() -> None:
    text = emit(
        program("filter", "-A INPUT -s 10.1.0.0/16 -j DROP", "-A INPUT -s 10.2.0.1/32 -j ACCEPT", level=1)
    ).text
    assert "flags interval" in text
    assert "10.1.0.0/16 comment" in text


def test_an_uneven_draw_is_exact_over_two_to_the_31() -> None:
    draw = "-m statistic --mode random --probability 0.25000000000"
    found = nft("filter", f"-A INPUT {draw} -j DROP", "-A INPUT -j ACCEPT", level=1)
    assert found["filter_INPUT"] == ["numgen random mod 2147483648 vmap @filter_INPUT_draw"]
    assert found["filter_INPUT_draw"][1:] == [
        "flags interval",
        "0-536870911 : drop",
        "536870912-2147483647 : accept",
    ]


def test_every_rule_names_its_line() -> None:
    text = emit(program("filter", "-A INPUT -s 10.0.0.1/32 -j DROP", "-A INPUT -j ACCEPT")).text
    assert 'ip saddr 10.0.0.1 drop comment "line 5"' in text
    assert 'accept comment "line 6"' in text


def test_a_rule_that_no_packet_can_pass_is_not_written() -> None:
    found = nft("filter", "-A INPUT -m mark --mark 0x2/0x1 -j DROP", "-A INPUT -j ACCEPT")
    assert found["filter_INPUT"] == ["accept"]


def nested(depth: int, call: str) -> list[str]:
    names = [f"c{n}" for n in range(1, depth + 1)]
    calls = [f"-A {a} {call} {b}" for a, b in zip(["INPUT", *names], names, strict=False)]
    return [*calls, f"-A {names[-1]} -p udp -j ACCEPT", f"-A {names[-1]} -j DROP"]


EVERY_SECOND = "-m statistic --mode nth --every 2 --packet 0"


def test_chains_nest_as_deep_as_nf_tables_allows() -> None:
    assert emit(program("filter", *nested(15, f"{EVERY_SECOND} -j")))
    with pytest.raises(UnsupportedError) as caught:
        emit(program("filter", *nested(16, f"{EVERY_SECOND} -j")))
    (refusal,) = caught.value.refusals
    assert (refusal.feature, refusal.origin.text) == ("jump-depth", f"-A c15 {EVERY_SECOND} -j c16")


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        ("-g", ["meta l4proto udp accept", "drop"]),
        ("-j", ["meta l4proto udp accept", "drop"]),
        ("-s 10.0.0.1 -j", ["ip saddr 10.0.0.1 meta l4proto udp accept", "ip saddr 10.0.0.1 drop"]),
        (
            "-s 10.0.0.1 -g",
            [
                "ip saddr 10.0.0.1 meta l4proto udp accept",
                "ip saddr 10.0.0.1 drop",
                "ip saddr 10.0.0.1 return",
            ],
        ),
    ],
)
def test_what_lies_deeper_is_written_where_it_is_called(call: str, wanted: list[str]) -> None:
    found = nft("filter", *nested(16, call))
    assert found["filter_c15"] == wanted
    assert nft("filter", *nested(100, call))["filter_c15"][: len(wanted)] == wanted
