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
    ("text", "said"),
    [
        ("", "plan:1:1: not a plan of nfparity migrate: not JSON"),
        ("[]", "plan:1:1: not a plan of nfparity migrate"),
        ("{}", "plan:1:1: not a plan of nfparity migrate: nfparity-migration is missing"),
        ('{"nfparity-migration": 2}', "plan:1:2: not a plan of nfparity migrate: expected the form 1"),
        ("[" * 5000, "plan:1:101: not a plan of nfparity migrate: more than 100 levels"),
        ('{"seed": ' + "1" * 5000, "plan:1:10: not a plan of nfparity migrate: a number of 5000 characters"),
    ],
)
def test_what_is_no_plan(text: str, said: str) -> None:
    with pytest.raises(ParseError) as caught:
        MigrationPlan.from_text(text, name="plan")
    assert said in str(caught.value)


def _changed(path: tuple[str | int, ...], value: object) -> str:
    data = json.loads(made().text())
    at = data
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return json.dumps(data, indent=1)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("families",), 5),
        (("families", 0), []),
        (("families", 0, "family"), "ip5"),
        (("families", 0, "stack"), ["legacy"]),
        (("families", 0, "rules"), 5),
        (("families", 0, "left"), "nat"),
        (("families", 0, "level"), "2"),
        (("families", 0, "meaning"), None),
        (("families", 0, "meaning", "chains"), {"a": [1, 2]}),
        (("families", 0, "meaning", "collections"), {"a": "xy"}),
        (("trial", "ip", "seconds"), 10**40),
        (("trial", "ip", "seconds"), "1"),
        (("seed",), None),
        (("node",), {}),
    ],
)
def test_a_value_of_a_plan_that_is_something_else_is_told_with_its_place(
    path: tuple[str | int, ...], value: object
) -> None:
    text = _changed(path, value)
    with pytest.raises(ParseError) as caught:
        MigrationPlan.from_text(text, name="plan")
    (found,) = caught.value.diagnostics
    key = [step for step in path if isinstance(step, str)][-1]
    line = text.split("\n")[found.origin.line - 1]
    assert found.origin.text == line
    assert f'"{key}"' in line or path[-1] == 0
    assert found.origin.column > 0


def test_a_plan_with_other_rules_than_its_digest_is_refused() -> None:
    data = json.loads(made().text())
    data["families"][0]["rules"] = RULES.replace("-i lo", "-i eth0")
    with pytest.raises(ParseError, match="not those of its digest"):
        MigrationPlan.from_text(json.dumps(data), name="plan")
