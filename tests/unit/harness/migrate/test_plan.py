from __future__ import annotations

import json
from dataclasses import replace

import pytest

from harness.migrate.meaning import Meaning
from harness.migrate.plan import FamilyPlan, MigrationPlan
from harness.snapshot import Stack
from translate.errors import ParseError
from translate.ir import Family
from translate.nft import emit
from translate.passes import lower
from translate.read import read_ruleset

RULES = """\
*filter
:INPUT DROP [0:0]
:FORWARD ACCEPT [0:0]
-A INPUT -i lo -j ACCEPT
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:KUBE-PROXY-CANARY - [0:0]
COMMIT
*security
:INPUT ACCEPT [0:0]
COMMIT
*raw
:PREROUTING ACCEPT [0:0]
-A PREROUTING -j NOTRACK
COMMIT
"""

TRIAL = {"ip": {"flows": 1, "seconds": 2.5}, "ip6": {"flows": 1, "seconds": 1}}


def made() -> MigrationPlan:
    output = emit(lower(read_ruleset(RULES.encode(), name="rules"), level=2))
    family = FamilyPlan(
        family=Family.IP,
        stack=Stack.LEGACY,
        rules=RULES,
        ipsets="",
        level=2,
        load=output.text,
        meaning=Meaning(flags=(), chains={}, collections={}, others={}),
    )
    return MigrationPlan(
        families=(family,),
        node="{}",
        seed=3,
        trial=TRIAL,
    )


def test_tables_that_stay_are_not_removed() -> None:
    (family,) = made().families
    assert [table.name for table in family.removed] == ["raw", "nat", "filter"]
    left = replace(family, left=("filter", "raw"))
    assert [table.name for table in left.removed] == ["nat"]
    assert left.digest == family.digest
    assert FamilyPlan.from_data(left.data()) == left


def test_a_plan_comes_back_from_its_file() -> None:
    plan = made()
    again = MigrationPlan.from_text(plan.text(), name="plan")
    assert again == plan
    assert again.digest == plan.digest
    assert again.seconds == 3.5


def test_tables_that_hold_something_are_emptied_those_that_forbid_last() -> None:
    (family,) = made().families
    assert [table.name for table in family.removed] == ["raw", "nat", "filter"]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"nfparity-migration": 2}', '{"nfparity-migration": 1, "families": [{}]}']
)
def test_what_is_no_plan(text: str) -> None:
    with pytest.raises(ParseError, match="plan: not a plan of nfparity migrate"):
        MigrationPlan.from_text(text, name="plan")


def test_a_plan_with_other_rules_than_its_digest_is_refused() -> None:
    data = json.loads(made().text())
    data["families"][0]["rules"] = RULES.replace("-i lo", "-i eth0")
    with pytest.raises(ParseError, match="not those of its digest"):
        MigrationPlan.from_text(json.dumps(data), name="plan")
