"""Plans of migrations, made without a kernel."""

from __future__ import annotations

from functools import cache

from backends.model.node import node_from_json
from backends.model.variant import Variant
from harness.diff.result import BackendReport, ParityReport
from nfparity.migrate.planning.plan import FamilyPlan, MigrationPlan
from nfparity.migrate.planning.planning import Planned, PlannedFamily
from nfparity.migrate.planning.rules import read_rules
from nfparity.migrate.planning.translation import digest_of_text, translate
from nfparity.migrate.planning.trial import batch_of, corpus
from nfparity.watch.table_state import TableState
from translate.ir import Family

__all__ = ["KUBE", "PLAIN", "family", "planned"]

NODE = '{"interfaces": {"eth0": ["192.168.0.2/24"], "pod0": ["10.244.0.1/24"]}}'
PLAIN = """*filter
:FORWARD ACCEPT [0:0]
:WEB - [0:0]
-A FORWARD -p tcp -m tcp --dport 80 -j WEB
-A WEB -s 192.168.0.9/32 -j DROP
COMMIT
"""
KUBE = """*nat
:PREROUTING ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
-A PREROUTING -j KUBE-SERVICES
-A KUBE-SERVICES -d 10.96.0.10/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.244.0.5:8080
COMMIT
"""


@cache
def family(text: str, *left: str) -> PlannedFamily:
    """A family's plan whose packets have all had the expected outcomes; none was sent."""
    rules = read_rules(text, Family.IP, "iptables-legacy-save", left, "")
    output = translate(rules, 2)
    node = node_from_json(NODE, name="node")
    batch = batch_of(rules, node, corpus(rules.tried.whole(), node, 0))
    plan = FamilyPlan(
        family=Family.IP, variant=Variant.LEGACY, left=left, rules=rules.text, ipsets="", level=2,
        translation=digest_of_text(output.text),
        table_state=TableState(flags=(), chains={}, collections={}, others={}),
    )  # fmt: skip
    flows = len(batch.flows)
    report = ParityReport(
        level=2, flows=flows, chancy=0, repeated=0, miss=1e-9, left_open=0, open_rules=(), share_tests=0,
        false_alarm_rate=1e-6, differences=(),
        backends=tuple(BackendReport(name=name, flows=flows) for name in ("nftables", "overlap")),
    )  # fmt: skip
    return PlannedFamily(
        plan=plan, output=output, notes=output.notes, report=report, batch=batch, untried=(), seconds=0.1
    )


def planned(*families: PlannedFamily) -> Planned:
    """A plan for these families."""
    plan = MigrationPlan(families=tuple(each.plan for each in families), node=NODE, seed=0, trial={})
    return Planned(plan=plan, families=families)
