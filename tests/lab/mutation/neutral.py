"""Proofs from the nft text alone that a fault changes no packet, for rules of any extension.

* nft compiles both texts to the same messages, so that the kernel is told the same. ``esp spi`` also tests
  for ESP, for example: ``meta l4proto esp`` before it adds nothing.
* A ``return`` has become an ``accept``, and no rule follows up to the end of a base chain that accepts.
* A call is no longer for one protocol alone, but each rule of the called chain is: nft itself adds such a
  test before a key of the protocol's header.
* A rule has lost the test of a protocol that each call of its chain has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from tests.lab.bytecode.compiler import Nft, NftError
from tests.lab.mutation.fault import Fault

__all__ = ["SAME_MESSAGES", "asked_before", "asks_again", "ends_alike", "proof_from_text", "same_messages"]

SAME_MESSAGES: Final = "nft sends the same messages to the kernel"
_ENDS_ALIKE: Final = "no rule follows, and the base chain accepts: a return and an accept are the same"
_ASKS_AGAIN: Final = "each rule of the called chain tests for the protocol, or nft adds this test"
_ASKED_BEFORE: Final = "each call of the chain tests for the protocol"
_CHAIN: Final = re.compile(r"^\tchain (\S+) \{\n(.*?)^\t\}$", re.MULTILINE | re.DOTALL)
_COMMENT: Final = re.compile(r' comment "[^"]*"')
_CALL: Final = re.compile(r"\b(jump|goto) (\S+)")
_LOST: Final = re.compile(r"(\t+)(meta l4proto (\w+) )(jump (\S+).*)")
_FIRST: Final = re.compile(r"\t\t(meta l4proto \w+ )")
_OF_FRAGMENTS: Final = r"(?:ip frag-off & 0x1fff == 0 |@th,0,24 >= 0 )?"
_NOTE: Final = "\t\tcomment "
_DEEPEST: Final = 16


def proof_from_text(text: str, fault: Fault) -> str | None:
    """Return the reason why the fault in ``text`` changes nothing, or None. Needs root, for nft."""
    if ends_alike(text, fault):
        return _ENDS_ALIKE
    if asks_again(text, fault):
        return _ASKS_AGAIN
    if asked_before(text, fault):
        return _ASKED_BEFORE
    return SAME_MESSAGES if same_messages(text, fault) else None


def same_messages(text: str, fault: Fault) -> bool:
    """Return whether nft tells the kernel the same for the text with and without the fault."""
    nft = Nft("nft")
    try:
        return nft.messages(text) == nft.messages(fault.plant(text))
    except NftError:
        return False


def ends_alike(text: str, fault: Fault) -> bool:
    """Return whether the fault only turns a ``return`` into an ``accept`` behind which nothing follows."""
    before, after = _COMMENT.sub("", fault.place.text), _COMMENT.sub("", fault.after or "")
    if not before.endswith(" return") or after != f"{before.removesuffix('return')}accept":
        return False
    return _nothing_behind(dict(_chains(text)), fault.place.block)


def asks_again(text: str, fault: Fault) -> bool:
    """Return whether a call has lost a test of the protocol that each rule of the called chain has.

    nft tells the kernel the same if the lost test is written into each of these rules, which have no other
    tests than that and those of the header. Needs root, for nft.
    """
    lost = _LOST.fullmatch(fault.place.text)
    if lost is None or fault.after != lost[1] + lost[4]:
        return False
    changed = fault.plant(text)
    chain = next((match for match in _CHAIN.finditer(changed) if match[1] == lost[5]), None)
    if chain is None:
        return False
    with_header = re.compile(rf"(\t\t{_OF_FRAGMENTS})({lost[3]} \w+ .*)")
    lines = chain[2].splitlines()
    if all(line.startswith((f"\t\t{lost[2]}", _NOTE)) for line in lines):
        return True
    if not all(with_header.fullmatch(line) or line.startswith(_NOTE) for line in lines):
        return False
    rules = "".join(with_header.sub(rf"\1{lost[2]}\2", line) + "\n" for line in lines)
    tested = changed[: chain.start(2)] + rules + changed[chain.end(2) :]
    nft = Nft("nft")
    try:
        return nft.messages(changed) == nft.messages(tested)
    except NftError:
        return False


def asked_before(text: str, fault: Fault) -> bool:
    """Return whether a rule has lost the test of a protocol at its start that each call of its chain has."""
    lost = _FIRST.match(fault.place.text)
    chains = dict(_chains(text))
    lines = chains.get(fault.place.block, ["type "])
    if lost is None or fault.after != "\t\t" + fault.place.text[lost.end() :] or lines[0].startswith("type "):
        return False
    called = re.compile(rf" (?:jump|goto) {re.escape(fault.place.block)}\b| vmap ")
    calls = [rule for rules in chains.values() for rule in rules if called.search(f" {rule}")]
    return bool(calls) and all(rule.startswith(lost[1]) and " vmap " not in rule for rule in calls)


def _chains(text: str) -> Iterator[tuple[str, list[str]]]:
    for match in _CHAIN.finditer(text):
        lines = (_COMMENT.sub("", line).strip() for line in match[2].splitlines())
        yield match[1], [line for line in lines if line and not line.startswith("comment ")]


def _nothing_behind(chains: Mapping[str, list[str]], name: str, depth: int = 0) -> bool:
    """Return whether the base chains accept all packets that return from a chain, and no rule sees them."""
    lines = chains[name]
    if lines and lines[0].startswith("type "):
        return "policy accept" in lines[0]
    sites = [
        (caller, at, call[1])
        for caller, rules in chains.items()
        for at, rule in enumerate(rules)
        for call in _CALL.finditer(rule)
        if call[2] == name
    ]
    if depth > _DEEPEST or any(name in rule for rules in chains.values() for rule in rules if "vmap" in rule):
        return False
    return all(
        (kind == "goto" or at + 1 == len(chains[caller])) and _nothing_behind(chains, caller, depth + 1)
        for caller, at, kind in sites
    )
