"""Nftables rules that may treat two equal flows differently."""

from __future__ import annotations

import pytest

from backends.given_nftables.variation import may_vary


@pytest.mark.parametrize(
    "rule",
    [
        "numgen random mod 3 vmap { 0 : goto a, 1 : goto b, 2 : goto c }",
        "masquerade fully-random",
        "masquerade random,fully-random",
        "snat to 10.0.0.1 random",
        "ip daddr . tcp dport vmap @service-ips",
        'ip daddr 10.0.0.1 drop comment "over the limit at this time"',
        "update @affinity-X-default/limit/tcp { ip saddr timeout 3h }",
        "dnat to 10.0.0.1:8080",
        "redirect to :8080",
        "dnat ip to numgen random mod 2 map { 0 : 10.244.0.4 . 53, 1 : 10.244.0.5 . 53 }",
        "ip daddr . tcp dport vmap { 10.96.0.1 . 443 : goto service-2QRHZV4L-a-b/c-d/tcp/https-1 }",
        "ip daddr { 10.0.0.1-10.0.0.9 } drop",
        "ct state new reject with tcp reset",
    ],
)
def test_rules_that_a_trace_explains(rule: str) -> None:
    assert not may_vary(f"table ip t {{\n\tchain c {{\n\t\t{rule}\n\t}}\n}}\n")


@pytest.mark.parametrize(
    "rule",
    [
        "meta random < 1000 drop",
        '{"match": {"left": {"meta": {"key": "random"}}}}',
        "numgen inc mod 2 0 drop",
        "limit rate 5/second accept",
        "quota over 10 mbytes drop",
        "ct count over 5 drop",
        "meta cpu 1 drop",
        'meta hour "08:00"-"17:00" drop',
        "meta time > 5 drop",
        "dnat to 10.0.0.1-10.0.0.9",
        "tcp dport 80 dnat ip to 10.0.0.1:80-90",
        "redirect to :80-90",
        "dnat ip to ip daddr map { 10.96.0.1 : 10.0.0.1-10.0.0.9 }",
        "dnat ip to ip daddr map { 10.96.0.1 : 10.0.0.1 . 80-90 }",
        '{"redirect": {"port": {"range": [80, 90]}}}',
        "queue to 1",
        "meta skuid 0 drop",
        "ct id 5 drop",
        '{"match": {"left": {"ct": {"key": "expiration"}}}}',
        "ct expiration < 10s drop",
        "tproxy to :50080",
    ],
)
def test_rules_that_depend_on_more(rule: str) -> None:
    assert may_vary(f"table ip t {{\n\tchain c {{\n\t\t{rule}\n\t}}\n}}\n")
