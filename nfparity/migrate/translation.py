"""The nft text of a plan, made from its rules: when it is planned, and anew when it is applied.

So a plan file, which may come from another machine, cannot have anything loaded but the translation of rules;
and these rules are in force here already, with the ipsets that they ask.
"""

from __future__ import annotations

import hashlib

from nfparity.migrate.plan import FamilyPlan
from nfparity.migrate.repeatable import insist_on_repeatable
from nfparity.migrate.rules import Rules, read_rules
from translate.errors import InputError, ParseError, UnsupportedError
from translate.ir import IpSet
from translate.nft import NftOutput, emit
from translate.passes import lower

__all__ = ["digest_of_text", "translate", "translation_of"]


def translate(rules: Rules, level: int) -> NftOutput:
    """Return the translation of the tables that are replaced.

    Raises UnsupportedError for what cannot be translated, and for rules that may not be asked twice.
    """
    output = emit(lower(rules.moved, level=level))
    insist_on_repeatable(rules.moved)
    return output


def translation_of(plan: FamilyPlan) -> str:
    """Return the nft text that a plan is to load.

    Raises InputError when it is not the text that the plan was tried with, or ipsets that the rules ask hold
    something else now; MachineError when these cannot be read.
    """
    name = f"the plan's {plan.family.value} rules"
    try:
        rules = read_rules(plan.rules, plan.family, name, plan.left, plan.ipsets)
        text = translate(rules, plan.level).text
    except (ParseError, UnsupportedError) as e:
        raise InputError(f"{name} cannot be translated; make another plan: {e}") from e
    if digest_of_text(text) != plan.translation:
        raise InputError(
            f"the translation of {name} is not the one that the plan was tried with: the plan is another "
            "version's, or was changed; make another plan"
        )
    if plan.ipsets:
        _insist_on_same_sets(plan, rules)
    return text


def digest_of_text(text: str) -> str:
    """Return the SHA-256 of an nft text."""
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


def _insist_on_same_sets(plan: FamilyPlan, planned: Rules) -> None:
    """Raise InputError unless the ipsets in force hold what they held: the translation has a copy of them."""
    try:
        now = read_rules(plan.rules, plan.family, "the live ipsets", plan.left, None)
    except ParseError as e:
        raise InputError(f"the ipsets have changed since the plan; make another plan: {e}") from e
    live = {one.name: _content(one) for one in now.moved.sets}
    for was in planned.moved.sets:
        if live.get(was.name) != _content(was):
            raise InputError(f"the ipset {was.name} has changed since the plan; make another plan")


def _content(one: IpSet) -> tuple[object, ...]:
    """Return what a set means to rules, in whatever order its elements are printed."""
    return one.type, one.family, frozenset((e.key, e.nomatch) for e in one.elements)
