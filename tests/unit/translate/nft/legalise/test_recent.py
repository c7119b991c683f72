from __future__ import annotations

import pytest

from tests.unit.translate.helpers.rules import nft, program
from translate.errors import UnsupportedError
from translate.nft import emit
from translate.nft.legalise.recent import SIZE

SOURCE = "--mask 255.255.255.255 --rsource"


def refusals(*rules: str) -> list[tuple[int, str]]:
    with pytest.raises(UnsupportedError) as caught:
        emit(program("filter", *rules))
    return [(r.origin.line - 4, r.feature) for r in caught.value.refusals]


def test_kube_proxys_affinity_is_a_set_with_a_timeout() -> None:
    found = nft(
        "nat",
        "-A PREROUTING -j SVC",
        f"-A SVC -m recent --rcheck --seconds 600 --reap --name A {SOURCE} -j SEP",
        f"-A SEP -p tcp -m recent --set --name A {SOURCE} -m tcp -j DNAT --to-destination 10.0.0.1:80",
    )
    assert found["recent_A"] == ["typeof ip saddr", f"size {SIZE}", "flags dynamic,timeout", "timeout 600s"]
    assert found["nat_SVC"] == ["ip saddr @recent_A jump nat_SEP"]
    # A full set ends the rule with update, and only that one.
    assert found["nat_SEP"] == [
        "meta l4proto tcp update @recent_A { ip saddr }",
        "meta l4proto tcp dnat to 10.0.0.1:80",
    ]


def test_each_timeout_of_a_list_is_a_set() -> None:
    found = nft(
        "filter",
        f"-A INPUT -m recent --name a --rcheck --seconds 5 {SOURCE} -j DROP",
        f"-A INPUT -m recent --name a ! --rcheck --seconds 60 {SOURCE} -j DROP",
        f"-A INPUT -m recent --name a --update {SOURCE} -j ACCEPT",
        f"-A INPUT -m recent --name a --remove {SOURCE} -j ACCEPT",
        f"-A INPUT -m recent --name a --set {SOURCE}",
    )
    assert found["recent_a"][-1] == "timeout 5s"
    assert found["recent_a_2"][-1] == "timeout 60s"
    assert found["recent_a_3"][-1] == "flags dynamic"
    names = ("recent_a", "recent_a_2", "recent_a_3")
    assert found["filter_INPUT"] == [
        "ip saddr @recent_a drop",
        "ip saddr != @recent_a_2 drop",
        *(f"ip saddr @recent_a_3 update @{name} {{ ip saddr }}" for name in names),
        "ip saddr @recent_a_3 accept",
        "ip saddr @recent_a_3 " + " ".join(f"delete @{name} {{ ip saddr }}" for name in names) + " accept",
        *(f"update @{name} {{ ip saddr }}" for name in names),
    ]


def test_a_list_is_written_behind_just_the_tests_before_it() -> None:
    found = nft(
        "filter",
        f"-A INPUT -p tcp -m recent --name a --set {SOURCE} -m tcp --dport 22 -j ACCEPT",
        f"-A INPUT -p tcp -m recent --name a --update --seconds 5 {SOURCE} -m tcp --dport 22 -j DROP",
    )
    assert found["filter_INPUT"] == [
        "meta l4proto tcp update @recent_a { ip saddr }",
        "tcp dport 22 accept",
        "meta l4proto tcp ip saddr @recent_a update @recent_a { ip saddr } tcp dport 22 drop",
    ]


def test_masks_and_sides() -> None:
    found = nft(
        "filter", "-A INPUT -m recent --name a --update --seconds 5 --mask 255.255.0.0 --rdest -j DROP"
    )
    key = "ip daddr & 255.255.0.0"
    assert found["filter_INPUT"] == [f"{key} @recent_a update @recent_a {{ {key} }} drop"]


def test_a_list_that_nobody_asks_is_no_set() -> None:
    found = nft("filter", f"-A INPUT -m recent --name a --set {SOURCE} -j DROP")
    assert found["filter_INPUT"] == ["drop"]
    assert "recent_a" not in found


def test_a_negated_set_writes_and_goes_on() -> None:
    found = nft(
        "filter",
        f"-A INPUT -m recent --name a ! --set {SOURCE} -j DROP",
        f"-A INPUT -m recent --name a --rcheck {SOURCE} -j ACCEPT",
    )
    assert found["filter_INPUT"] == ["update @recent_a { ip saddr }", "ip saddr @recent_a accept"]


def test_what_sets_cannot_say_is_refused_rule_by_rule() -> None:
    assert refusals(
        f"-A INPUT -m recent --name a ! --rcheck --hitcount 2 {SOURCE} -j DROP",
        f"-A INPUT -m recent --name b --rcheck --rttl {SOURCE} -j DROP",
        f"-A INPUT -m recent --name c --rcheck {SOURCE} -j DROP",
        "-A INPUT -m recent --name c --set --mask 255.255.0.0 --rsource -j DROP",
        f"-A INPUT -m recent --name d --rcheck --seconds 5 --reap {SOURCE} -j DROP",
        f"-A INPUT -m recent --name d --remove {SOURCE} -j DROP",
        f"-A INPUT -m recent --name e --update --hitcount 33 {SOURCE} -j DROP",
        f"-A INPUT -m recent --name f --update --hitcount 32 {SOURCE} -j DROP",
    ) == [
        (1, "recent-hitcount"),
        (2, "recent-rttl"),
        (3, "recent-mask"),
        (4, "recent-mask"),
        (5, "recent-reap"),
        (7, "recent-hitcount"),
    ]


def test_a_number_of_packets_is_a_row_of_times() -> None:
    found = nft(
        "filter",
        f"-A INPUT -m recent --name a --set {SOURCE}",
        f"-A INPUT -m recent --name a --update --seconds 30 --hitcount 2 {SOURCE} -j DROP",
        f"-A INPUT -m recent --name a --remove {SOURCE} -j ACCEPT",
    )
    assert found["recent_a_time"][-1] == found["recent_a_turn"][-1] == "timeout 30s"
    every = "ip saddr @recent_a_time ip saddr @recent_a_time_2"
    gone = [f"delete @recent_a{one} {{ ip saddr }}" for one in ("", "_turn", "_turn_2", "_time", "_time_2")]
    assert found["filter_INPUT"] == [
        "update @recent_a { ip saddr }",
        "jump filter_INPUT_2",
        f"{every} update @recent_a {{ ip saddr }}",
        f"{every} jump filter_INPUT_2",
        f"{every} drop",
        f"ip saddr @recent_a {' '.join(gone)} accept",
    ]
    turn = (
        "ip saddr @recent_a_turn{0} update @recent_a_time{0} {{ ip saddr }}"
        " delete @recent_a_turn{0} {{ ip saddr }}"
    )
    assert found["filter_INPUT_2"] == [
        f"{turn.format('')} update @recent_a_turn_2 {{ ip saddr }} return",
        f"{turn.format('_2')} update @recent_a_turn {{ ip saddr }} return",
        "update @recent_a_time { ip saddr } update @recent_a_turn_2 { ip saddr }",
    ]


def test_two_sides_of_a_list_put_times_into_it_by_chains_of_their_own() -> None:
    found = nft(
        "filter",
        f"-A INPUT -m recent --name a --set {SOURCE}",
        "-A INPUT -m recent --name a --set --mask 255.255.255.255 --rdest",
        f"-A INPUT -m recent --name a --set {SOURCE}",
        f"-A INPUT -m recent --name a --rcheck --hitcount 2 {SOURCE} -j DROP",
    )
    assert found["filter_INPUT"][:3] == [f"jump filter_INPUT_{n}" for n in (2, 3, 2)]
    assert found["filter_INPUT_3"][0].startswith("ip daddr @recent_a_turn ")


def test_a_negated_update_refreshes_what_is_too_old() -> None:
    found = nft("filter", f"-A INPUT -m recent --name e ! --update --seconds 5 {SOURCE} -j DROP")
    assert found["filter_INPUT"] == ["jump filter_INPUT_2"]
    assert found["filter_INPUT_2"] == [
        "ip saddr @recent_e return",
        "ip saddr @recent_e_2 update @recent_e { ip saddr }",
        "ip saddr @recent_e_2 update @recent_e_2 { ip saddr }",
        "drop",
    ]


def test_a_negated_remove_takes_out_what_is_there() -> None:
    found = nft("filter", f"-A INPUT -m recent --name e ! --remove {SOURCE} -j DROP")
    assert found["filter_INPUT_2"] == ["ip saddr @recent_e delete @recent_e { ip saddr } return", "drop"]


def test_a_list_behind_chance_is_in_a_chain() -> None:
    draw = "-m statistic --mode random --probability 0.50000000000"
    found = nft(
        "filter",
        f"-A INPUT {draw} -m recent --name f --set {SOURCE} -j DROP",
        f"-A INPUT -m recent --name f --rcheck {SOURCE} -j DROP",
    )
    assert found["filter_INPUT"][0] == "numgen random mod 2147483648 < 1073741824 jump filter_INPUT_2"
    assert found["filter_INPUT_2"] == ["update @recent_f { ip saddr }", "drop"]


def test_two_changes_of_lists_are_two_rules() -> None:
    rule = (
        f"-A INPUT -m recent --name f --update --seconds 5 {SOURCE} -m recent --name f --set {SOURCE} -j DROP"
    )
    found = nft("filter", rule)
    assert found["filter_INPUT"] == ["ip saddr @recent_f update @recent_f { ip saddr } jump filter_INPUT_2"]
    assert found["filter_INPUT_2"] == ["update @recent_f { ip saddr }", "drop"]


def test_a_hitcount_of_one_is_none() -> None:
    found = nft("filter", f"-A INPUT -m recent --name a --rcheck --hitcount 1 {SOURCE} -j DROP")
    assert found["filter_INPUT"] == ["ip saddr @recent_a drop"]


def test_the_capacity_is_a_note_with_the_rules_line_and_the_size() -> None:
    output = emit(
        program(
            "filter",
            f"-A INPUT -m recent --name a --rcheck {SOURCE} -j DROP",
            f"-A INPUT -m recent --name a --set {SOURCE}",
            f"-A INPUT -m recent --name unfilled --rcheck {SOURCE}",
        )
    )
    (note,) = output.notes
    assert note.render().startswith("rules:6: nftables: the list a of -m recent holds 100 addresses")
    assert str(SIZE) in note.text
    assert output.flush == "flush set ip nfparity recent_a\nflush set ip nfparity recent_unfilled\n"
