"""A migration whose state on disk is damaged, gone, or somebody else's.

``rollback`` restores the rules from what is left, or says why it cannot and prints commands that do. While
our table is loaded it never says that nothing was applied.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from backends.iptables.backend import IptablesBackend
from backends.replay.worker import Worker
from nfparity.migrate.state import owned
from nfparity.migrate.state.record import Phase
from nfparity.persistent_state.namespace import current_namespace
from nfparity.persistent_state.recordfile import read_record, write_record
from nfparity.snapshot import Variant
from tests.kernel.helpers.availability import require
from tests.kernel.helpers.migratenode import (
    DISK,
    RULES,
    STATE,
    Forget,
    Fresh,
    MakePlan,
    Shell,
    do,
    migrate_node,
)
from tests.kernel.helpers.migratestate import OLD, NodeState, assert_translated, read_state
from tests.lab.forkedcommand import run_nfparity
from tests.lab.traffic.host import Host, Request

RECORD, PLAN, SAVED, JOURNAL = (
    STATE / name for name in ("record.json", "plan.json", "ip.iptables-save", "journal")
)
ROOT = Path(__file__).resolve().parents[2]
FILES = (RECORD, PLAN, SAVED, JOURNAL)


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def garble(data: bytes) -> bytes:
    return b"".join(b"\xff\xfe{" + data[n : n + 50] for n in range(0, len(data), 97))


def flip(data: bytes) -> bytes:
    """One digit is another one, in everything that is there twice."""
    return data.replace(b"5300", b"5301").replace(b"applied", b"applyed").replace(b'"since"', b'"sinse"')


def rewritten(change: Callable[[bytes], bytes]) -> Callable[..., None]:
    def damage(*paths: Path) -> None:
        for path in paths:
            with open(path, "r+b") as file:
                data = change(file.read())
                file.seek(0)
                file.truncate()
                file.write(data)

    return damage


def remove(*paths: Path) -> None:
    for path in paths:
        os.unlink(path)


def replace_by_folder(*paths: Path) -> None:
    for path in paths:
        os.unlink(path)
        os.mkdir(path)


def replace_by_fifo(*paths: Path) -> None:
    for path in paths:
        os.unlink(path)
        os.mkfifo(path)


def let_others_write(*paths: Path) -> None:
    for path in paths:
        os.chmod(path, 0o666)


def link_to_copies(*paths: Path) -> None:
    for path in paths:
        os.rename(path, f"{path}.moved")
        os.symlink(f"{path}.moved", path)


def link_to_nothing(*paths: Path) -> None:
    for path in paths:
        os.unlink(path)
        os.symlink("/nowhere", path)


def link_to_itself(*paths: Path) -> None:
    for path in paths:
        os.unlink(path)
        os.symlink(path, path)


HARM: dict[str, Callable[..., None]] = {
    "empty": rewritten(lambda data: b""),
    "cut": rewritten(cut),
    "garbled": rewritten(garble),
    "with other digits": rewritten(flip),
    "zeros": rewritten(lambda data: bytes(len(data))),
    "not UTF-8": rewritten(lambda data: data + b"\xff\xfe\n"),
    "deep JSON": rewritten(lambda data: b"[" * 100_000),
    "JSON of something else": rewritten(lambda data: b'{"families": 3, "phase": [], "begin": {}}\n'),
    "gone": remove,
    "a folder": replace_by_folder,
    "a FIFO": replace_by_fifo,
    "a link to nothing": link_to_nothing,
    "a link to itself": link_to_itself,
}
DOUBT: dict[str, Callable[..., None]] = {
    "that others can write": let_others_write,
    "a link to a copy": link_to_copies,
}


@dataclass(frozen=True)
class Harm(Request):
    """Damages files of the state."""

    kind: str
    paths: tuple[Path, ...]

    def run(self, host: Host) -> None:
        (HARM | DOUBT)[self.kind](*self.paths)


@dataclass(frozen=True)
class Change(Request):
    """Changes what the record says, by a writer that is none of its owner's."""

    values: tuple[tuple[str, object], ...]

    def run(self, host: Host) -> None:
        write_record(RECORD, {**(read_record(RECORD) or {}), **dict(self.values)})


@dataclass(frozen=True)
class Folder(Request):
    """Damages the folder itself."""

    kind: str

    def run(self, host: Host) -> None:
        match self.kind:
            case "gone":
                shutil.rmtree(STATE)
            case "a file":
                shutil.rmtree(STATE)
                STATE.write_text("")
            case "a link to where it was moved":
                STATE.rename(DISK / "moved")
                STATE.symlink_to(DISK / "moved")
            case "that others can write":
                STATE.chmod(0o777)
            case "of another user":
                os.chown(STATE, 1234, 1234)


@pytest.fixture(scope="module", params=[Variant.LEGACY, pytest.param(Variant.NFT, marks=pytest.mark.slow)])
def variant(request: pytest.FixtureRequest) -> Variant:
    """The two differ in the names of tools alone."""
    require(IptablesBackend(f"iptables-{request.param}"))
    return Variant(request.param)


@pytest.fixture(scope="module")
def started(variant: Variant) -> Iterator[Worker]:
    with migrate_node(variant, Harm) as worker:
        yield worker


@pytest.fixture(scope="module")
def plan(started: Worker, variant: Variant) -> str:
    text: str = started.ask(MakePlan(variant))
    return text


@pytest.fixture
def node(started: Worker, variant: Variant) -> Worker:
    started.ask(Fresh(variant))
    return started


MOMENTS = ("cut short", "applied", "confirmed", "after a reboot")


def bring_to(node: Worker, variant: Variant, plan: str, moment: str) -> None:
    """Bring the migration to some point, at which nobody is at work, no timer either."""
    node.ask(Fresh(variant))
    at = "done empty ip nat" if moment == "cut short" else "done applied"
    assert do(node, "apply", plan, at=at, alone=True).killed
    if moment in ("confirmed", "after a reboot"):
        assert do(node, "confirm").error is None
    if moment == "after a reboot":
        node.ask(Forget(variant))


def insist_restored(node: Worker, variant: Variant) -> None:
    result = do(node, "rollback")
    assert result.error is None, result.error
    assert result.done
    insist_old(read_state(node, variant))
    again = do(node, "rollback")
    assert (again.error, again.done) == (None, False)


def insist_old(state: NodeState) -> None:
    """After a reboot IPv6 has no rules; the plan is about IPv4 alone."""
    assert state.iptables[0] == OLD[0]
    assert state.nft == (False, False)
    assert state.answered


def insist_on_commands(node: Worker, variant: Variant, copy: str = RULES) -> None:
    """It fails, and prints commands, which are run as they stand; until then what is in force stays."""
    error = do(node, "rollback").error
    assert error is not None
    before = read_state(node, variant)
    if any(before.nft):
        assert before.answered
    commands = [line for line in error.split("\n") if line.startswith("  ")]
    assert commands, error
    script = "\n".join(commands).replace("COPY", "/run/COPY")
    node.ask(Shell(("sh", "-ec", f"cat > /run/COPY <<'END'\n{copy}END\n{script}")))
    insist_old(read_state(node, variant))
    assert do(node, "rollback").done is False


def damaged(node: Worker, variant: Variant, plan: str, moment: str, kind: str, *paths: Path) -> None:
    bring_to(node, variant, plan, moment)
    node.ask(Harm(kind, paths))


ONE_FILE = tuple(itertools.product(MOMENTS, HARM, FILES))


def insist_that_one_file_does_not_matter(
    node: Worker, variant: Variant, plan: str, cases: Iterable[tuple[str, str, Path]]
) -> None:
    for moment, kind, path in cases:
        damaged(node, variant, plan, moment, kind, path)
        try:
            insist_restored(node, variant)
        except AssertionError as e:
            raise AssertionError(f"{moment}: {path.name} is {kind}: {e}") from e


def test_one_file_is_damaged(node: Worker, variant: Variant, plan: str) -> None:
    """The others are enough."""
    insist_that_one_file_does_not_matter(node, variant, plan, ONE_FILE[::17])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_any_file_is_damaged_in_any_way(node: Worker, variant: Variant, plan: str, part: int) -> None:
    insist_that_one_file_does_not_matter(node, variant, plan, ONE_FILE[part::4])


@pytest.mark.parametrize("moment", MOMENTS)
def test_of_each_pair_one_has_the_rules(node: Worker, variant: Variant, plan: str, moment: str) -> None:
    pairs = ((RECORD, PLAN), (RECORD, SAVED), (RECORD, JOURNAL), (PLAN, JOURNAL), (SAVED, JOURNAL))
    kinds = itertools.cycle(("empty", "gone", "garbled", "cut", "zeros", "with other digits"))
    pair = MOMENTS.index(moment)
    for two, kind in zip(pairs[pair:] + pairs[:pair], kinds, strict=False):
        damaged(node, variant, plan, moment, kind, *two)
        insist_restored(node, variant)


@pytest.mark.parametrize("moment", MOMENTS)
def test_the_rules_are_damaged_everywhere(node: Worker, variant: Variant, plan: str, moment: str) -> None:
    """The mark of the table and the record tell whose they were; what they were only a copy can."""
    for kind in ("empty", "with other digits") if moment in ("confirmed", "after a reboot") else ("gone",):
        damaged(node, variant, plan, moment, kind, SAVED, PLAN)
        insist_on_commands(node, variant)


def test_other_rules_are_not_restored(node: Worker, variant: Variant, plan: str) -> None:
    """Whole files, which are about something else than what was replaced."""
    node.ask(Shell((f"iptables-{variant}", "-t", "nat", "-F", "KUBE-SERVICES")))
    other = node.ask(MakePlan(variant))
    for moment in ("confirmed", "after a reboot"):
        node.ask(Fresh(variant))
        node.ask(Shell((f"iptables-{variant}", "-t", "nat", "-F", "KUBE-SERVICES")))
        assert do(node, "apply", other).error is None
        assert do(node, "rollback").done
        files = [node.ask(Shell(("cat", str(path)))) for path in (SAVED, PLAN)]
        bring_to(node, variant, plan, moment)
        for path, text in zip((SAVED, PLAN), files, strict=True):
            node.ask(Shell(("sh", "-c", f"cat > {path} <<'END'\n{text}END")))
        insist_on_commands(node, variant)


@pytest.mark.parametrize("kind", DOUBT)
def test_a_file_that_is_not_to_be_trusted(node: Worker, variant: Variant, plan: str, kind: str) -> None:
    """While the table is loaded, its mark vouches for the rules; afterwards nobody does."""
    damaged(node, variant, plan, "confirmed", kind, *FILES)
    insist_restored(node, variant)
    damaged(node, variant, plan, "after a reboot", kind, SAVED)
    insist_restored(node, variant)
    damaged(node, variant, plan, "after a reboot", kind, *FILES)
    insist_on_commands(node, variant)


@pytest.mark.parametrize("kind", ["gone", "a file"])
def test_the_folder_is_not_there(node: Worker, variant: Variant, plan: str, kind: str) -> None:
    bring_to(node, variant, plan, "confirmed")
    node.ask(Folder(kind))
    insist_on_commands(node, variant)


def test_the_folder_was_moved(node: Worker, variant: Variant, plan: str) -> None:
    for moment in ("confirmed", "after a reboot"):
        bring_to(node, variant, plan, moment)
        node.ask(Folder("a link to where it was moved"))
        insist_restored(node, variant)


@pytest.mark.parametrize("kind", ["that others can write", "of another user"])
def test_the_folder_is_not_to_be_trusted(node: Worker, variant: Variant, plan: str, kind: str) -> None:
    bring_to(node, variant, plan, "confirmed")
    node.ask(Folder(kind))
    insist_restored(node, variant)
    result = do(node, "apply", plan)
    assert result.error is not None
    assert "other users can write to" in result.error or "belongs to user" in result.error
    assert read_state(node, variant).nft == (False, False)
    bring_to(node, variant, plan, "after a reboot")
    node.ask(Folder(kind))
    insist_on_commands(node, variant)


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


def test_the_timer_needs_no_disk(node: Worker, variant: Variant, plan: str) -> None:
    """It restores from memory."""
    assert do(node, "apply", plan, within=1.5).error is None
    node.ask(Folder("gone"))
    state = read_state(node, variant, at_rest=True)
    insist_old(state)


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


@dataclass(frozen=True)
class MakeOlder(Request):
    def run(self, host: Host) -> None:
        record = dict(read_record(RECORD) or {})
        del record["machine"], record["saved"]
        RECORD.write_text(json.dumps(record, indent=1))
        data = json.loads(PLAN.read_text())
        del data["digest"]
        data["nfparity-migration"] = 1
        PLAN.write_text(json.dumps(data))
        SAVED.write_text(
            "".join(
                x
                for x in SAVED.read_text().splitlines(keepends=True)
                if x[:6] != "# nfpa" and x[:5] != "# sha"
            )
        )
        listed = subprocess.run(
            ("nft", "list", "table", "ip", "nfparity"), capture_output=True, text=True, check=False
        )
        if not listed.returncode:
            text = "\n".join(x for x in listed.stdout.splitlines() if not x.startswith('\tcomment "nfparity'))
            assert text != listed.stdout.rstrip("\n")
            text = text.replace("$x", "x")  # which nft takes for a variable
            owned.load(f"delete table ip nfparity\n{text}\n")


@dataclass(frozen=True)
class Nfparity(Request):
    """Runs the command on the node."""

    words: tuple[str, ...]

    def run(self, host: Host) -> tuple[int, str, str]:
        result = run_nfparity(("migrate", *self.words))
        return result.status, result.out, result.err
