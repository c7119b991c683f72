"""Nftables rules that may treat two equal flows differently."""

from __future__ import annotations

import pytest

from backends.given_nftables.variation import declaration_may_vary, rule_may_vary


@pytest.mark.parametrize(
    "rule",
    [
        "numgen random mod 3 vmap { 0 : goto a, 1 : goto limit, 2 : goto c }",
        "masquerade fully-random",
        "meta mark & 0x00004000 != 0x00000000 masquerade random,fully-random",
        "snat to 10.0.0.1 random",
        "snat to fd00::1 fully-random,persistent",
        "ip daddr . meta l4proto . th dport vmap @service-ips",
        'ip daddr 10.0.0.1 counter packets 5 bytes 300 drop comment "over the limit at this time"',
        "update @affinity-X-default/limit/tcp { ip saddr timeout 3h }",
        "dnat to 10.0.0.1:8080",
        "dnat to [fd00::a]:8080",
        "redirect to :8080",
        "dnat ip to numgen random mod 2 map { 0 : 10.244.0.4 . 53, 1 : 10.244.0.5 . 53 }",
        "ip daddr . tcp dport vmap { 10.96.0.1 . 443 : goto service-2QRHZV4L-a-b/c-d/tcp/https-1 }",
        "ip daddr { 10.0.0.1-10.0.0.9 } drop",
        "ip6 daddr fd00:beef::/64 drop",
        "ether saddr ba:dd:ad:de:ad:be drop",
        "ct state new reject with tcp reset",
        "fib saddr type != local ip daddr @cluster-ips return",
        'log prefix "meta random " level warn',
    ],
)
def test_rules_that_a_trace_explains(rule: str) -> None:
    assert not rule_may_vary(rule)


@pytest.mark.parametrize(
    "rule",
    [
        "meta random < 1000 drop",
        "meta mark set meta random",
        "snat to meta random map { 0-9 : 10.0.0.1 } fully-random",
        "redirect to :8080 random",
        "numgen inc mod 2 0 drop",
        "limit rate 5/second accept",
        'limit name "slow" accept',
        "quota over 10 mbytes drop",
        "ct count over 5 drop",
        "meta cpu 1 drop",
        'meta hour "08:00"-"17:00" drop',
        "meta time > 5 drop",
        "dnat to 10.0.0.1-10.0.0.9",
        "dnat to fd00::1-fd00::9",
        "tcp dport 80 dnat ip to 10.0.0.1:80-90",
        "redirect to :80-90",
        "dnat ip to ip daddr map { 10.96.0.1 : 10.0.0.1-10.0.0.9 }",
        "dnat ip to ip daddr map { 10.96.0.1 : 10.0.0.1 . 80-90 }",
        "queue to 1",
        "meta skuid 0 drop",
        "ct id 5 drop",
        "ct expiration < 10s drop",
        "tproxy to :50080",
        "ip id 5 drop",
        "tcp sequence 7 drop",
        "tcp checksum 7 drop",
        "@th,16,16 80 drop",
        'xt match "statistic"',
        "flow add @ft",
        "delete @seen { ip saddr }",
        "a statement of a later version",
    ],
)
def test_rules_that_depend_on_more(rule: str) -> None:
    assert rule_may_vary(rule)


@pytest.mark.parametrize(
    "line",
    [
        "type ipv4_addr . inet_proto . inet_service : verdict",
        "typeof ip saddr . meta l4proto",
        "flags dynamic,timeout",
        "timeout 3h",
        "size 65535 # count 2",
        'elements = { 10.98.0.5 . tcp . 5432 comment "over the limit" : goto quota-1-2,',
        "10.98.0.5 . tcp . 80 : 10.0.0.1 . 8080 }",
        "fd00::1 . tcp . 80 : fd00::a . 8080 }",
        'elements = { "eth0", "eth1" }',
    ],
)
def test_declarations_of_sets_whose_elements_stay(line: str) -> None:
    assert not declaration_may_vary(line)


@pytest.mark.parametrize(
    "line",
    [
        "elements = { 10.0.0.1 timeout 5s expires 3s998ms,",
        "elements = { 10.0.0.1 limit rate 1/second,",
        "limit rate 1/second",
        "10.0.0.1 counter packets 1 bytes 2 quota 5 bytes }",
        "elements = { 10.96.0.1 : 10.0.0.1-10.0.0.9 }",
        "typeof meta hour",
    ],
)
def test_declarations_of_sets_whose_elements_may_change(line: str) -> None:
    assert declaration_may_vary(line)
