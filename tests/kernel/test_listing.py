"""``iptables -L`` and ``-S`` of what a kernel holds mean what ``iptables-save`` text of it means."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from backends.testbed.command import find_tool
from translate.ir import AnyOf, Family, Field, FieldTest, HashLimit, Quota, Rule, Test
from translate.read import InputForm, read_ruleset

pytestmark = pytest.mark.kernel

RULES = Path(__file__).parent.parent / "corpus" / "rulesets"
COMMANDS = {Family.IP: "iptables", Family.IP6: "ip6tables"}
MARKER = b"=-=-=\n"
OWNERS = (Field.SOCKET_UID, Field.SOCKET_GID)
LISTINGS = ("-L -n -v -x", "-L -n", "-L -v --line-numbers", "-L", "-S", "-S -v")


def _show(family: Family, table: str, text: bytes) -> list[bytes]:
    """Load ``text`` into a network namespace that ends with the command; return each listing."""
    command = f"{COMMANDS[family]}-legacy"
    for tool in ("unshare", command):
        if find_tool(tool) is None:
            pytest.skip(f"needs {tool}")
    shows = " && echo =-=-= && ".join(f"{command} -t {table} {options}" for options in LISTINGS)
    script = f"{command}-restore && {shows}"
    done = subprocess.run(
        ["unshare", "-n", "sh", "-c", script], input=text, capture_output=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.split(MARKER)


HIDDEN = (HashLimit, Quota)
"""Tests of which a listing hides something: the name of a table, and whether it is negated."""


def _tests(rule: Rule, *, interfaces: bool, owners: bool) -> set[Test]:
    hidden = [*(() if interfaces else (Field.IIF, Field.OIF)), *(() if owners else OWNERS)]
    return {
        test
        for test in rule.tests
        if not any(
            isinstance(part, FieldTest) and part.field in hidden
            for part in (test.tests if isinstance(test, AnyOf) else (test,))
        )
    }


@pytest.mark.parametrize(
    ("family", "path"),
    [
        (Family.IP, "every-option/ip.rules"),
        (Family.IP6, "every-option/ip6.rules"),
        (Family.IP, "kind-node/rules.iptables-save"),
    ],
)
def test_listings_mean_what_was_loaded(family, path):
    text = (RULES / path).read_bytes()
    for table in read_ruleset(text, name=path, family=family).tables:
        for options, shown in zip(LISTINGS, _show(family, table.name, text), strict=True):
            ruleset = read_ruleset(shown, name=f"{table.name} {options}", family=family, table=table.name)
            verbose = "-v" in options or "-S" in options
            for chain in table.chains:
                listed = ruleset.tables[0].chain(chain.name)
                assert listed is not None
                assert listed.policy == chain.policy
                for before, after in zip(chain.rules, listed.rules, strict=True):
                    named = any("is printed by name" in one.reason for one in after.unknown)
                    wanted = _tests(before, interfaces=verbose, owners=not named), before.actions
                    known = _tests(after, interfaces=True, owners=not named)
                    hashed = "-L" in options and any(isinstance(test, HIDDEN) for test in wanted[0])
                    if hashed:
                        wanted = {t for t in wanted[0] if not isinstance(t, HIDDEN)}, before.actions
                    assert (known, after.actions) == wanted, after.origin
                    assert bool(after.unknown) == (not verbose or named or hashed)
                    assert not named or "-n" not in options.split()


def test_forms_are_told_apart():
    text = (RULES / "kind-node/rules.iptables-save").read_bytes()
    from translate.read.forms import recognise_form

    found = [recognise_form(shown.decode()) for shown in _show(Family.IP, "nat", text)]
    assert found == [InputForm.LISTING] * 4 + [InputForm.RULES] * 2
