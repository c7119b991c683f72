"""Random matches that few rulesets have; each stands in rules of any protocol."""

from __future__ import annotations

import random
from typing import Final

from translate.ir import Family

__all__ = ["rare_match"]

_WITH_IN_DEVICE: Final = frozenset({"PREROUTING", "INPUT", "FORWARD"})
_WITH_OUT_DEVICE: Final = frozenset({"FORWARD", "OUTPUT", "POSTROUTING"})
_LENGTHS: Final = ("8", "16", "9", "0", "2048", "2056", "256")
_FRAGMENTS: Final = ("--fragres", "--fragfirst", "--fragmore", "--fraglen 8")
_IDS: Final = ("0", "5", "5:7", ":9", "9:", "7:5", "0:4294967295")
_HEADERS: Final = ("hop", "dst", "route", "frag", "esp", "none", "prot")
_CPUS: Final = ("0", "1", "63", "4294967295")
_BACK: Final = (
    *("--loose", "--loose --invert", "--loose --validmark", "--loose --accept-local"),
    *("--accept-local", "--accept-local --invert", "--loose --validmark --accept-local --invert"),
)
_SETS: Final = (
    *("nets dst --return-nomatch", "networks src,dst --return-nomatch", "hosts src --packets-gt 5"),
    *("nets dst ! --update-counters --bytes-lt 1", "pairs dst,dst ! --update-subcounters ! --packets-eq 1"),
)
_GROUPS: Final = ("default", "0x7", "7", "0x1/0x1", "0x10/0xf0", "0x13/0xf", "0/0", "4294967295")


def rare_match(draw: random.Random, family: Family, hook: str, *, early: bool = False) -> str:
    """Return a match that may stand in a chain of ``hook``, or an empty text.

    ``early``: the chain is in raw or mangle.
    """
    matches = [_devgroup(draw, hook), f"-m cpu {_no(draw)}--cpu {draw.choice(_CPUS)}"]
    if family is Family.IP6 and hook in _WITH_IN_DEVICE:
        matches.append("-m eui64")
    matches.append(f"-m set {_no(draw)}--match-set {draw.choice(_SETS)}")
    if early and hook == "PREROUTING":
        matches.append(f"-m rpfilter {draw.choice(_BACK)}")
    if family is Family.IP6:
        matches += [_options(draw), _options(draw), _fragment(draw), _headers(draw)]
    return draw.choice(matches)


def _no(draw: random.Random) -> str:
    return "! " if draw.random() < 0.35 else ""


def _options(draw: random.Random) -> str:
    name = draw.choice(("hbh", "dst"))
    length = f" {_no(draw)}--{name}-len {draw.choice(_LENGTHS)}" if draw.random() < 0.7 else ""
    return f"-m {name}{length}"


def _fragment(draw: random.Random) -> str:
    words = [word for word in _FRAGMENTS if draw.random() < 0.4]
    if draw.random() < 0.6:
        words.append(f"{_no(draw)}--fragid {draw.choice(_IDS)}")
    return " ".join(("-m frag", *words))


def _headers(draw: random.Random) -> str:
    names = draw.sample(_HEADERS, draw.randint(1, 3))
    return f"-m ipv6header {_no(draw)}--header {','.join(names)} --soft"


def _devgroup(draw: random.Random, hook: str) -> str:
    sides = [side for side, hooks in (("src", _WITH_IN_DEVICE), ("dst", _WITH_OUT_DEVICE)) if hook in hooks]
    chosen = [side for side in sides if draw.random() < 0.7] or sides[:1]
    return " ".join(
        ("-m devgroup", *(f"{_no(draw)}--{side}-group {draw.choice(_GROUPS)}" for side in chosen))
    )
