"""Tables written by one version of nft and read by another: Debian 12's 1.0.6 and Debian 13's 1.1.3.

The writer loads the text, the reader lists it, and the reader loads this listing. The meaning must stay the
same, and no version may crash: ``MALLOC_PERTURB_`` makes reads of freed memory fail each time.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from backends.nftables.backend import NftablesBackend
from nfparity.watch.drift import drift
from nfparity.watch.table_state import read_tables
from tests.kernel.helpers.availability import require
from translate.errors import UnsupportedError
from translate.ir import Family
from translate.nft import emit
from translate.passes import lower
from translate.read import read_ipsets, read_ruleset, with_sets
from vm.nft import RELEASES, ensure_nft

ROOT = Path(__file__).parents[2]
RULESETS = ROOT / "tests/corpus/rulesets"
OLD, NEW = RELEASES["bookworm"], RELEASES["trixie"]

LOST = {
    # nft reads $x in a quoted text as a variable, also in its own listing.
    ("nft-joins", OLD): "does not load",
    ("nft-joins", NEW): "does not load",
    # The listing has `ct original proto-dst` without the protocol that gives the type of its value.
    ("one-rule-many", OLD): "does not load",
    ("one-rule-many", NEW): "means something else",
    ("protocol-implied", OLD): "does not load",
    # The listing lacks the mask without which nft joins two ports across a label that is set.
    ("labels", OLD): "means something else",
    # The listing of a SYNPROXY rule has its TCP flags in another form.
    ("syn-proxy", OLD): "means something else",
    ("syn-proxy", NEW): "means something else",
    # A change of some bits of DSCP or ECN in IPv6 is listed as a change of other bits.
    ("header-changes6", OLD): "means something else",
    ("header-changes6", NEW): "means something else",
    # A field at a raw offset becomes another match of the same bits.
    ("u32", NEW): "means something else",
    # nft 1.1.3 prints a masked field at a raw offset (`--icase`) without its mask.
    ("texts", NEW): "does not load",
}
"""The listings of a reader that do not keep the meaning of a translation, whoever wrote the table."""

SERVE = """
import json, subprocess, sys
commands, text = json.loads(sys.argv[1]), sys.stdin.read()
def run(version, *words, text=""):
    command = ["env", "MALLOC_PERTURB_=165", *commands[version], *words]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    return done.returncode, done.stdout
made = {}
for writer in commands:
    status = run(writer, "-f", "-", text=text)[0]
    for reader in commands:
        if status:
            break
        listed, again = run(reader, "-s", "list", "ruleset"), run(list(commands)[-1], "-j", "list", "ruleset")
        run(reader, "flush", "ruleset")
        loaded = run(reader, "-f", "-", text=listed[1])[0]
        after = run(list(commands)[-1], "-j", "list", "ruleset")
        made[f"{writer} {reader}"] = [listed[0], loaded, again[1], after[1]]
        run(reader, "flush", "ruleset")
        run(writer, "-f", "-", text=text)
    run(writer, "flush", "ruleset")
print(json.dumps(made))
"""


@cache
def commands() -> dict[str, list[str]]:
    return {
        version: list(ensure_nft(release, build=ROOT / "build", say=print))
        for release, version in RELEASES.items()
    }


def matrix(text: str) -> dict[tuple[str, str], list[Any]]:
    """Return, by writer and reader, the statuses of listing and of loading again, and both states."""
    command = ("unshare", "--net", sys.executable, "-c", SERVE, json.dumps(commands()))
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    made = json.loads(done.stdout)
    return {(pair.split()[0], pair.split()[1]): results for pair, results in made.items()}


def verdict(results: list[Any]) -> str:
    listed, loaded, before, after = results
    if listed:
        return "crashes" if listed > 128 or listed < 0 else "does not list"
    if loaded:
        return "does not load"
    first, second = read_tables(before), read_tables(after)
    changed = first.keys() != second.keys() or any(drift(first[key], second[key]) for key in first)
    return "means something else" if changed else "same"


def translations() -> Iterator[Any]:
    for folder in sorted(RULESETS.iterdir()):
        for family, tool in ((Family.IP, "iptables"), (Family.IP6, "ip6tables")):
            path = folder / f"rules.{tool}-save"
            if path.exists():
                yield pytest.param(path, family, id=f"{folder.name}-{family.value}")


@pytest.fixture(scope="module", autouse=True)
def _needs_nftables() -> None:
    require(NftablesBackend())


@pytest.mark.slow
@pytest.mark.parametrize(("path", "family"), tuple(translations()))
def test_translations(path: Path, family: Family) -> None:
    folder = path.parent
    rules = read_ruleset(path.read_bytes(), name=path.name, family=family)
    for ipsets in folder.glob("ipset*"):
        rules = with_sets(rules, read_ipsets(ipsets.read_bytes(), name=ipsets.name))
    try:
        text = emit(lower(rules, level=2)).text
    except UnsupportedError:
        pytest.skip("these rules cannot be translated")
    results = matrix(text)
    if not results:
        pytest.skip("this kernel lacks what these rules need")
    assert {pair: verdict(result) for pair, result in results.items()} == {
        (writer, reader): LOST.get((folder.name, reader), "same")
        for writer in (OLD, NEW)
        for reader in (OLD, NEW)
    }


CRASH = """\
table ip kube-proxy {
	map service-ips {
		type ipv4_addr . inet_proto . inet_service : verdict
	}
}
"""


def test_a_map_with_types_of_nft_1_1_crashes_nft_1_0() -> None:
    """nft 1.0.6 reads freed memory when it lists a map that nft 1.1.3 declared by ``type``, as kube-proxy's.

    Whether it crashes depends on the memory without MALLOC_PERTURB_. Maps by ``typeof``, as in a translation,
    are not affected.
    """
    results = matrix(CRASH)
    assert {pair: verdict(result) for pair, result in results.items()} == {
        (OLD, OLD): "same",
        (OLD, NEW): "same",
        (NEW, OLD): "crashes",
        (NEW, NEW): "same",
    }
    typed = CRASH.replace(
        "type ipv4_addr . inet_proto . inet_service", "typeof ip daddr . meta l4proto . th dport"
    )
    assert {verdict(result) for result in matrix(typed).values()} == {"same"}


def test_kube_proxys_tables() -> None:
    """Those of nft 1.1.3 are listed by 1.1.3 alone."""
    results = matrix((RULESETS / "kube-real/realistic.nft").read_text())
    assert {pair: verdict(result) for pair, result in results.items()} == {
        (OLD, OLD): "same",
        (OLD, NEW): "same",
        (NEW, OLD): "crashes",
        (NEW, NEW): "same",
    }
