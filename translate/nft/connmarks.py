"""``-j CONNMARK`` as nft rules.

* Reading ``ct mark`` ends the rule for a packet without a conntrack entry (``nft_ct_get_eval``). CONNMARK
  does nothing to such a packet, so that this is right, provided nothing stands behind it in the rule.
* nft before 1.1.2, and the kernel before 6.13, join a mark with constants only. ``mark & A ^ ctmark & B``
  takes one rule to clear, and one for each bit that is copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, assert_never

from translate.ir import Action, RestoreMark, SaveMark, SetConnmark

__all__ = ["connmark_rules", "marked", "stands_apart"]

_ALL: Final = 0xFFFFFFFF
_HAS_ENTRY: Final = "ct state established,related,new"
"""Holds of just the packets with a conntrack entry (``nf_ct_get``)."""

Connmark = SetConnmark | SaveMark | RestoreMark


def marked(name: str, value: int, mask: int) -> str:
    """Return ``(name & ~mask) ^ value`` as nft reads it: ``&`` binds tighter than ``^``."""
    keep = ~mask & _ALL
    if keep == 0:
        return hex(value)
    if value and value == mask:
        return f"{name} | {value:#x}"
    kept = name if keep == _ALL else f"{name} & {keep:#010x}"
    return f"{kept} ^ {value:#x}" if value else kept


def stands_apart(actions: Sequence[Action]) -> bool:
    """Whether one of the actions needs rules of its own, or may end a rule that goes on."""
    return any(
        isinstance(action, SetConnmark | SaveMark | RestoreMark)
        and (index < len(actions) - 1 or len(list(connmark_rules(action))) > 1)
        for index, action in enumerate(actions)
    )


def connmark_rules(action: Connmark) -> Iterator[tuple[str, ...]]:
    """Yield the rules that do ``action``, each as its matches and its statement."""
    match action:
        case SetConnmark(value=value, mask=mask):
            yield (f"ct mark set {marked('ct mark', value, mask)}",)
        case SaveMark(nfmask=nfmask, ctmask=ctmask):
            if ctmask == _ALL:
                yield (f"ct mark set {_masked('meta mark', nfmask)}",)
                return
            if ctmask or not nfmask:
                yield (f"ct mark set {marked('ct mark', 0, ctmask)}",)
            for bit in _bits(nfmask):
                yield f"meta mark & {bit:#x} == {bit:#x}", f"ct mark set ct mark ^ {bit:#x}"
        case RestoreMark(nfmask=nfmask, ctmask=ctmask):
            if nfmask == _ALL:
                yield (f"meta mark set {_masked('ct mark', ctmask)}",)
                return
            if nfmask or not ctmask:
                yield _HAS_ENTRY, f"meta mark set {marked('meta mark', 0, nfmask)}"
            for bit in _bits(ctmask):
                yield f"ct mark & {bit:#x} == {bit:#x}", f"meta mark set meta mark ^ {bit:#x}"
        case _:
            assert_never(action)


def _masked(name: str, mask: int) -> str:
    return name if mask == _ALL else f"{name} & {mask:#010x}"


def _bits(mask: int) -> Iterator[int]:
    return (1 << n for n in range(32) if mask >> n & 1)
