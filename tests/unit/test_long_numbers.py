"""Each number of each kind of rule in the corpora, as one of 5,000 digits: it is read, or refused.

Python does not convert so many digits (``sys.set_int_max_str_digits``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import translate.bpf
import translate.nft
from translate.errors import NfparityError
from translate.ir import Family
from translate.passes import lower
from translate.read import read_ruleset

CORPUS = Path(__file__).parents[1] / "corpus"
NUMBER = re.compile(r"(?<![A-Za-z_])(?:0x[0-9a-fA-F]+|[0-9]+)")
BUILT_IN = ("INPUT", "OUTPUT", "FORWARD", "PREROUTING", "POSTROUTING")
DIGITS = "1" * 5000


def rules() -> Iterator[tuple[Family, str, str]]:
    """Yield each rule with its family and table; of rules that differ in names and numbers only, one."""
    known = set()
    for file in sorted(CORPUS.rglob("*tables-save")):
        family = Family.IP6 if "ip6tables" in file.name else Family.IP
        table = ""
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("*"):
                table = line
            kind = NUMBER.sub("0", re.sub(r"^-A \S+", "-A", line))
            if line.startswith("-A ") and (table, kind) not in known:
                known.add((table, kind))
                yield family, table, line


@pytest.mark.parametrize("digits", [DIGITS, f"0x{DIGITS}"], ids=["decimal", "hexadecimal"])
def test_numbers_of_five_thousand_digits(digits: str) -> None:
    changed = read = 0
    for family, table, line in rules():
        for number in NUMBER.finditer(line, len("-A ")):
            rule = line[: number.start()] + digits + line[number.end() :]
            chain = rule.split()[1]
            declared = "" if chain in BUILT_IN else f":{chain} - [0:0]\n"
            changed += 1
            try:
                ruleset = read_ruleset(
                    f"{table}\n{declared}{rule}\nCOMMIT\n".encode(), name="rules", family=family
                )
                read += 1
                program = lower(ruleset, level=2)
                translate.nft.emit(program)
                translate.bpf.emit(program)
            except NfparityError:
                pass
    assert changed > 3000
    assert read > 30
