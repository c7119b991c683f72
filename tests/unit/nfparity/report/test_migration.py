"""A plan in words."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from harness.diff.result import BackendReport, ParityReport
from nfparity.migrate.state.saved import SavedFamily
from nfparity.report.migration import packets_text, static_lines
from nfparity.snapshot import Variant
from translate.ir import Family

PLAIN = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -i lo -j ACCEPT\nCOMMIT\n"
KUBE = "*nat\n:PREROUTING ACCEPT [0:0]\n:KUBE-SERVICES - [0:0]\n-A PREROUTING -j KUBE-SERVICES\nCOMMIT\n"


def planned(text: str, *left: str) -> Any:
    saved = SavedFamily(family=Family.IP, variant=Variant.LEGACY, left=left, text=text)
    return SimpleNamespace(plan=saved)


def test_every_plan_says_that_it_is_static() -> None:
    (line,) = static_lines((planned(PLAIN),))
    assert line.startswith("static: ")
    assert list(static_lines((planned(PLAIN + KUBE, "nat"),))) == [line]


def test_where_kube_proxys_rules_are_replaced_it_names_what_follows_services() -> None:
    lines = list(static_lines((planned(PLAIN), planned(KUBE + PLAIN))))
    assert "later changes of Services and endpoints have no effect" in lines[1]
    assert [line[:4] for line in lines[2:]] == ["  - "] * 3
    assert "nftables mode" in lines[2]
    assert "--keep-table nat:" in lines[3]
    assert "plan and apply again" in lines[4]


def report(**flows: int) -> ParityReport:
    backends = tuple(BackendReport(name=name, flows=count) for name, count in flows.items())
    return ParityReport(
        level=2,
        flows=9,
        chancy=0,
        repeated=0,
        miss=0.0,
        left_open=0,
        open_rules=(),
        share_tests=0,
        false_alarm_rate=0.0,
        backends=backends,
        differences=(),
    )


def test_a_backend_that_was_sent_fewer_flows_has_their_number() -> None:
    assert packets_text(report(nftables=9, both=4)) == "9 flows: nftables 0 different, both 0 different of 4"
