from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.migrate.meaning import Meaning
from harness.migrate.plan import FamilyPlan, MigrationPlan, _digest_of, families_in
from harness.migrate.translation import digest_of_text, translation_of
from harness.snapshot import Stack
from translate.errors import InputError, ParseError
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
        translation=digest_of_text(output.text),
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


def test_the_digest_does_not_depend_on_how_long_the_packets_took() -> None:
    plan = made()
    assert replace(plan, trial={**TRIAL, "ip6": {"flows": 1, "seconds": 7}}).digest == plan.digest
    assert replace(plan, trial={**TRIAL, "ip6": {"flows": 2, "seconds": 1}}).digest != plan.digest


def test_tables_that_hold_something_are_emptied_those_that_forbid_last() -> None:
    (family,) = made().families
    assert [table.name for table in family.removed] == ["raw", "nat", "filter"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "plan:1:1: not a plan of nfparity migrate: not JSON"),
        ("[]", "plan:1:1: not a plan of nfparity migrate"),
        ("{}", "plan:1:1: not a plan of nfparity migrate: nfparity-migration is missing"),
        ('{"nfparity-migration": 1}', "plan:1:2: not a plan of nfparity migrate: expected the form 2"),
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


def places(data: object) -> Iterator[tuple[Any, Any]]:
    """Yield every object or list in a JSON value, with each of its keys."""
    if isinstance(data, dict | list):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield data, key
            yield from places(value)


def test_the_digest_covers_all_of_it() -> None:
    """Whatever is changed, or left out."""
    text = made().text()
    count = sum(1 for _ in places(json.loads(text)))
    assert count > 20
    for number in range(count):
        for change in (lambda at, key: at.__setitem__(key, 77), lambda at, key: at.__delitem__(key)):
            data = json.loads(text)
            change(*list(places(data))[number])
            with pytest.raises(ParseError, match="not a plan of nfparity migrate"):
                MigrationPlan.from_text(json.dumps(data), name="plan")


def resealed(data: dict[str, Any]) -> str:
    """Return a plan with a digest that is right, as somebody who knows how makes it."""
    data["digest"] = _digest_of({key: value for key, value in data.items() if key != "digest"})
    return json.dumps(data)


HOSTILE: dict[str, tuple[tuple[str | int, ...], object]] = {
    "no families": (("families",), []),
    "no list of families": (("families",), {"ip": 1}),
    "a family twice": (("families",), 2),
    "no family": (("families", 0, "family"), "inet"),
    "other rules": (("families", 0, "rules"), RULES.replace("-i lo", "-i eth0")),
    "rules that are no text": (("families", 0, "rules"), ["*nat"]),
    "a table that leads out of the folder": (("families", 0, "rules"), "*../x\nCOMMIT\n"),
    "a stack": (("families", 0, "stack"), "nftables"),
    "tables that stay": (("families", 0, "left"), ["../x"]),
    "tables that stay, as a text": (("families", 0, "left"), "filter"),
    "a level": (("families", 0, "level"), -1),
    "a level that is none": (("families", 0, "level"), True),
    "ipsets": (("families", 0, "ipsets"), None),
    "meaning": (("families", 0, "meaning"), {}),
    "a node": (("node",), {}),
    "a seed": (("seed",), 1.5),
    "a time": (("trial", "ip", "seconds"), "1"),
    "a long time": (("trial", "ip", "seconds"), 10**300),
    "no time": (("trial", "ip", "seconds"), float("nan")),
    "a negative time": (("trial", "ip", "seconds"), -1),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_plan_that_somebody_has_made_up(what: str) -> None:
    path, value = HOSTILE[what]
    data = json.loads(made().text())
    at = data
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = at[path[-1]] * 2 if what == "a family twice" else value
    with pytest.raises(ParseError, match="not a plan of nfparity migrate"):
        MigrationPlan.from_text(resealed(data), name="plan")


@pytest.mark.parametrize("name", ["plan_big.plan", "plan_empty.plan"])
def test_plans_found_from_outside(name: str) -> None:
    text = (Path(__file__).parent / "plans" / name).read_text()
    with pytest.raises(ParseError, match="not a plan of nfparity migrate"):
        MigrationPlan.from_text(text, name=name)


def test_a_plan_holds_no_nft_text_and_loads_the_translation_alone() -> None:
    """What is added to it is not looked at; another translation than the one that was tried is refused."""
    data = json.loads(made().text())
    assert "load" not in data["families"][0]
    data["families"][0]["load"] = 'include "/etc/shadow"\nadd table inet theirs\n'
    plan = MigrationPlan.from_text(resealed(data), name="plan")
    (family,) = plan.families
    text = translation_of(family)
    assert digest_of_text(text) == family.translation
    assert "include" not in text
    assert "theirs" not in text
    data["families"][0]["translation"] = digest_of_text("add table inet theirs\n")
    (family,) = MigrationPlan.from_text(resealed(data), name="plan").families
    with pytest.raises(InputError, match="is not the one that the plan was tried with"):
        translation_of(family)


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (RULES.replace("-i lo", "-m nonsense"), "cannot be translated"),
        (RULES.replace("-i lo", "-m set --match-set x src"), "there is no ipset"),
        (RULES.replace("NOTRACK", "MARK --set-xmark 0x1/0x0"), "toggles bits"),
    ],
)
def test_rules_of_a_plan_that_cannot_be_translated(rules: str, said: str) -> None:
    family = replace(made().families[0], rules=rules)
    with pytest.raises(InputError, match=said):
        translation_of(family)


def test_what_restores_the_rules_is_found_in_a_plan_of_any_form() -> None:
    data = json.loads(made().text())
    for form in (1, 2, 3):
        data["nfparity-migration"] = form
        assert families_in(json.dumps(data)) == (made().families[0].saved,)
    data["families"][0]["rules"] = RULES.replace("-i lo", "-i eth0")
    with pytest.raises(ValueError, match="not those of its digest"):
        families_in(json.dumps(data))
    with pytest.raises(ValueError, match="it is no plan"):
        families_in("[" * 100_000)
