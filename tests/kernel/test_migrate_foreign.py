"""A migration whose record, tables or rules are those of another machine, program or version.

``rollback`` restores only the rules of its own migration, and leaves everything else unchanged.
"""

from __future__ import annotations

import pytest

from backends.replay.worker import Worker
from nfparity.migrate.state.record import Phase
from nfparity.persistent_state.namespace import current_namespace
from nfparity.snapshot import Variant
from tests.kernel.helpers.harmednode import node, plan, started, variant
from tests.kernel.helpers.migratedamage import (
    Change,
    MakeOlder,
    Nfparity,
    bring_to,
    insist_old,
    insist_restored,
)
from tests.kernel.helpers.migratenode import (
    STATE,
    Shell,
    do,
)
from tests.kernel.helpers.migratestate import OLD, assert_translated, read_state

__all__ = ["node", "plan", "started", "variant"]
"""The fixtures."""


ANOTHER = {
    "machine": ("machine", "0123456789abcdef"),
    "boot": ("boot", "another"),
    "namespace": ("namespace", "1 2"),
    "migration, which is over": ("phase", Phase.ROLLED_BACK.value),
    "migration, of other rules": ("saved", {"ip": ["legacy", "0" * 64]}),
    "migration, of another family": ("saved", {"ip6": ["nft", "0" * 64]}),
}


@pytest.mark.parametrize("what", ANOTHER)
def test_a_record_of_another(node: Worker, variant: Variant, plan: str, what: str) -> None:
    """The loaded rules are better evidence."""
    bring_to(node, variant, plan, "confirmed")
    node.ask(Change((ANOTHER[what],)))
    if "family" in what:
        error = do(node, "rollback").error
        assert error is not None
        assert "the old ip6 rules cannot be restored" in error
        insist_old(read_state(node, variant))
    else:
        insist_restored(node, variant)


def test_a_record_of_another_machine_after_a_reboot(node: Worker, variant: Variant, plan: str) -> None:
    """As when a disk was copied: the other machine's rules are not restored here."""
    if not current_namespace().machine:
        pytest.skip("this machine has no /etc/machine-id")
    bring_to(node, variant, plan, "after a reboot")
    node.ask(Change((("machine", "0123456789abcdef"),)))
    for action in ("rollback", "apply"):
        result = do(node, action, plan)
        assert result.error is not None
        assert "belongs to another network namespace or machine" in result.error
    assert not any(line.startswith("-A") for line in read_state(node, variant).iptables[0])


def test_a_table_of_which_nothing_is_known(node: Worker, variant: Variant) -> None:
    node.ask(Shell(("nft", "add", "table", "ip6", "nfparity")))
    error = do(node, "rollback").error
    assert error is not None
    assert "nft delete table ip6 nfparity" in error
    for action in ("status", ("verify", "--live")):
        words = (action,) if isinstance(action, str) else action
        status, _, err = node.ask(Nfparity((*words, "--state", str(STATE))))
        assert status == 3
        assert "table ip6 nfparity is loaded" in err


def test_a_table_that_somebody_else_has_loaded_since(node: Worker, variant: Variant, plan: str) -> None:
    """It is not taken for that of a migration which is over, nor is what it left behind restored."""
    bring_to(node, variant, plan, "confirmed")
    assert do(node, "rollback").done
    node.ask(Shell(("nft", "add", "table", "ip", "nfparity")))
    node.ask(Shell((f"iptables-{variant}", "-t", "nat", "-F", "KUBE-SERVICES")))
    before = read_state(node, variant)
    error = do(node, "rollback").error
    assert error is not None
    assert "another program has loaded it" in error
    after = read_state(node, variant)
    assert (after.nft, after.iptables) == ((True, False), before.iptables)


def test_a_table_of_the_other_family_is_none_of_its_business(
    node: Worker, variant: Variant, plan: str
) -> None:
    bring_to(node, variant, plan, "confirmed")
    node.ask(Shell(("nft", "add", "table", "ip6", "nfparity")))
    assert do(node, "rollback").done
    state = read_state(node, variant)
    assert (state.iptables, state.nft, state.phase) == (OLD, (False, True), Phase.ROLLED_BACK)


def test_what_is_kept_elsewhere(node: Worker, variant: Variant, plan: str) -> None:
    """The mark of the table says where."""
    bring_to(node, variant, plan, "confirmed")
    status, out, err = node.ask(Nfparity(("rollback", "--state", "/run/nowhere")))
    assert (status, out) == (3, "")
    assert f"nfparity migrate rollback --state {STATE}" in err
    assert_translated(read_state(node, variant))
    status, out, err = node.ask(Nfparity(("rollback", "--state", str(STATE))))
    assert (status, err) == (0, "")
    assert "rolled back: the old rules are loaded" in out
    insist_old(read_state(node, variant))


@pytest.mark.parametrize("moment", ["confirmed", "after a reboot"])
def test_what_an_older_version_has_applied(node: Worker, variant: Variant, plan: str, moment: str) -> None:
    """Its record is plain JSON, its plan of the form before, its rules have no seal, its table no mark."""
    bring_to(node, variant, plan, moment)
    node.ask(MakeOlder())
    insist_restored(node, variant)
