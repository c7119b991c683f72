"""The nft text of a plan, translated from its rules at planning and again at apply.

Apply does not load text from the plan file, which may come from another machine. It loads only the
translation of the rules and ipsets that are loaded here.
"""

from __future__ import annotations

import hashlib

from nfparity.migrate.planning.plan import FamilyPlan
from nfparity.migrate.planning.repeatable import insist_on_repeatable
from nfparity.migrate.planning.rules import Rules, read_rules
from nfparity.migrate.state.saved import SavedFamily
from translate.condense import emit_nft, lower
from translate.errors import InputError, ParseError, UnsupportedError
from translate.ir import IpSet
from translate.nft import NftOutput

__all__ = ["digest_of_text", "output_of_saved", "retranslated", "translate", "translation_of"]


def translate(rules: Rules, level: int) -> NftOutput:
    """Return the translation of the replaced tables.

    Raises UnsupportedError for rules that cannot be translated, or that must not run twice.
    """
    output = emit_nft(lower(rules.moved, level=level))
    insist_on_repeatable(rules.moved)
    return output


def translation_of(plan: FamilyPlan) -> NftOutput:
    """Return the translation of a plan.

    Raises InputError if it is not the tested text, or if ipsets of the rules have changed; MachineError if
    the ipsets cannot be read.
    """
    output, rules = _translated(plan)
    if plan.ipsets:
        _insist_on_same_sets(plan, rules)
    return output


def retranslated(plan: FamilyPlan) -> str:
    """Return the nft text of a plan that is applied. Raises InputError if it is not the tested text."""
    return _translated(plan)[0].text


def output_of_saved(saved: SavedFamily) -> NftOutput:
    """Return the translation of saved rules, by this version of nfparity. Raises NfparityError."""
    name = f"the saved {saved.family.value} rules"
    rules = read_rules(saved.text, saved.family, name, saved.left, saved.ipsets or None)
    return emit_nft(lower(rules.moved, level=saved.level))


def _translated(plan: FamilyPlan) -> tuple[NftOutput, Rules]:
    name = f"the plan's {plan.family.value} rules"
    try:
        rules = read_rules(plan.rules, plan.family, name, plan.left, plan.ipsets)
        output = translate(rules, plan.level)
    except (ParseError, UnsupportedError) as e:
        raise InputError(f"{name} cannot be translated; make another plan: {e}") from e
    if digest_of_text(output.text) != plan.translation:
        raise InputError(
            f"the translation of {name} is not the one that was tested: the plan was made by another version "
            "of nfparity, or was changed; make another plan"
        )
    return output, rules


def digest_of_text(text: str) -> str:
    """Return the SHA-256 of an nft text."""
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


def _insist_on_same_sets(plan: FamilyPlan, planned: Rules) -> None:
    """Raise InputError if the live ipsets have changed, because the translation has a copy of them."""
    try:
        now = read_rules(plan.rules, plan.family, "the live ipsets", plan.left, None)
    except ParseError as e:
        raise InputError(f"the ipsets have changed since the plan; make another plan: {e}") from e
    live = {ipset.name: _content(ipset) for ipset in now.moved.sample.sets}
    for was in planned.moved.sample.sets:
        if live.get(was.name) != _content(was):
            raise InputError(f"the ipset {was.name} has changed since the plan; make another plan")


def _content(ipset: IpSet) -> tuple[object, ...]:
    """Return the contents of a set, independent of the order of its elements."""
    return ipset.type, ipset.family, frozenset((e.key, e.nomatch) for e in ipset.elements)
