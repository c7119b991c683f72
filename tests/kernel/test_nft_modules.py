"""Modules found in nftables text, against the expressions that nft sends to the kernel."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from backends.testbed.command import find_tool
from nfparity.inputs.rules import load_rules
from nfparity.kubeproxy import recover
from nfparity.kubeproxy.nftables import LAYOUTS, nftables_mode
from nfparity.requires import kube_proxy_needs
from nfparity.requires.nftmodules import nft_modules
from translate.gaps import translate_with_gaps
from translate.ir import Family
from translate.nft import emit
from translate.passes import lower

ROOT = Path(__file__).parents[2]
RULESETS = ROOT / "tests/corpus/rulesets"
NAMES = (
    *(
        "every-construct",
        "every-option",
        "every-target",
        "kube-real",
        "tproxy",
        "quota",
        "connlimit",
        "limit",
    ),
    *("hashlimit", "ipsec-headers6", "owner", "rpfilter6", "six", "zones"),
)
ALIASES = ROOT / "tests/unit/nfparity/requires/modules-6.12.txt"
OBJECTS = {"ct helper": "nft_ct", "limit": "nft_limit", "quota": "nft_quota"}
PARTS = {"nft_fib_ipv4": "nft_fib", "nft_fib_ipv6": "nft_fib", "nft_reject_ipv4": "nft_reject"}
PARTS["nft_reject_ipv6"] = "nft_reject"


def expressions(text: str) -> set[str]:
    """Return the expressions of a text as nft names them: ``ct``, ``payload``."""
    if find_tool("nft") is None or find_tool("unshare") is None:
        pytest.skip("needs nft and unshare")
    done = subprocess.run(
        ["unshare", "-n", "nft", "--debug=netlink", "-f", "-"],
        input=text,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )
    if "Operation not permitted" in done.stderr:
        pytest.skip("needs root")
    assert done.returncode == 0, done.stderr
    return set(re.findall(r"\[ (\w+) ", done.stdout))


def needed(text: str) -> set[str]:
    """Return the modules that have the expressions, objects and chains of a text."""
    by_alias = {}
    for line in ALIASES.read_text().splitlines():
        module, _, names = line.partition(":")
        by_alias.update(dict.fromkeys(names.split(), module))
    family = "10" if "table ip6 " in text else "2"
    modules = {"nf_tables"}
    for name in expressions(text):
        for alias in (f"nft-expr-{name}", f"nft-expr-{family}-{name}"):
            if alias in by_alias:
                modules.add(by_alias[alias])
    modules |= {
        module for kind, module in OBJECTS.items() if re.search(rf"^\s*{kind} \S+ {{", text, re.MULTILINE)
    }
    modules |= {PARTS[module] for module in modules & PARTS.keys()}
    return modules | ({"nft_chain_nat"} if "type nat hook" in text else set())


@pytest.mark.parametrize("name", NAMES)
def test_modules_of_a_translation(name: str) -> None:
    for path in sorted((RULESETS / name).glob("*tables-save")):
        output, _ = translate_with_gaps(load_rules(str(path)), lambda rules: emit(lower(rules, level=1)))
        modules = nft_modules(output.text)
        assert {m for m in modules if not m.startswith("nf_conntrack_")} == needed(output.text), path


def test_modules_of_kube_proxys_nftables_mode() -> None:
    state = recover(load_rules(str(RULESETS / "kube-real/rules.iptables-save")))
    stated = {need.module for need in kube_proxy_needs((Family.IP,))}
    for version in (min(LAYOUTS), max(LAYOUTS)):
        text = nftables_mode(state, version).text
        assert nft_modules(text) == needed(text) == stated
    real = (RULESETS / "kube-real/realistic.nft").read_text()
    assert nft_modules(real) == {need.module for need in kube_proxy_needs(Family)}  # of both families
