"""Dumps of which rules are missing, doubled or moved: no rule is lost, and no name dangles."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from nfparity.kubeproxy import read_objects, recover
from nfparity.kubeproxy.nftables import nftables_mode
from translate.ir import Family
from translate.read import read_ruleset

RULESETS = Path(__file__).resolve().parents[3] / "corpus/rulesets"
REAL = RULESETS / "kube-real"
FILES = (
    (REAL / "rules.iptables-save", Family.IP),
    (REAL / "rules.ip6tables-save", Family.IP6),
    (RULESETS / "kube-xlb/rules.iptables-save", Family.IP),
)


def damaged(text: str, rng: random.Random) -> str:
    """Take rules away, write some twice, change ports, hide names, and mix the order within a table."""
    lines = text.splitlines()
    rules = [n for n, line in enumerate(lines) if "-A KUBE-" in line]
    for n in rng.sample(rules, len(rules) // 4):
        match rng.randrange(5):
            case 0:
                lines[n] = "#"
            case 1:
                lines[n] += f"\n{lines[n]}"
            case 2:
                lines[n] = re.sub(r"--dport (\d+)", lambda m: f"--dport {int(m[1]) ^ 1}", lines[n])
            case 3:
                lines[n] = re.sub(r'-m comment --comment "[^"]*" ?', "", lines[n])
            case _:
                end = lines.index("COMMIT", n)
                other = rng.choice([r for r in rules if n <= r < end])
                lines[n], lines[other] = lines[other], lines[n]
    return "\n".join((*lines, ""))


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize(("path", "family"), FILES)
def test_every_rule_is_a_line_or_remainder(path: Path, family: Family, seed: int) -> None:
    rng = random.Random(f"{path.name} {seed}")
    text = damaged(path.read_text(), rng)
    ruleset = read_ruleset(text.encode(), name="rules", family=family)
    objects = read_objects((REAL / "objects.json").read_text(), name="objects") if seed % 2 else None
    state = recover(ruleset, objects)
    rules = sorted(
        r.origin.line for t in ruleset.tables for c in t.chains for r in c.rules if "KUBE-" in r.origin.text
    )
    kept = [line.origin.line for s in state.services for line in s.lines]
    kept += [line.origin.line for line in state.lines]
    kept += [r.origin.line for r in state.remainder]
    assert sorted(kept) == rules
    for version in ("1.30", "1.36"):
        made = nftables_mode(state, version).text
        declared = set(re.findall(r"add (?:chain|set|map) ip6? kube-proxy (\S+)", made))
        assert set(re.findall(r"(?:goto|jump) ([^\s}]+)", made)) <= declared
        assert set(re.findall(r"add (?:rule|element) ip6? kube-proxy (\S+)", made)) <= declared
