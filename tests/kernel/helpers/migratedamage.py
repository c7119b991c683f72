"""Damage to the saved state of a migration, and checks of the rollback after it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from backends.replay.worker import Worker
from nfparity.migrate.state import owned
from nfparity.persistent_state.recordfile import read_record, write_record
from nfparity.snapshot import Variant
from tests.kernel.helpers.migratenode import (
    DISK,
    RULES,
    STATE,
    Forget,
    Fresh,
    Shell,
    do,
)
from tests.kernel.helpers.migratestate import OLD, NodeState, read_state
from tests.lab.forkedcommand import run_nfparity
from tests.lab.traffic.host import Host, Request

RECORD, PLAN, SAVED, JOURNAL = (
    STATE / name for name in ("record.json", "plan.json", "ip.iptables-save", "journal")
)


FILES = (RECORD, PLAN, SAVED, JOURNAL)


def cut(data: bytes) -> bytes:
    """Return the first half."""
    return data[: len(data) // 2]


def garble(data: bytes) -> bytes:
    return b"".join(b"\xff\xfe{" + data[n : n + 50] for n in range(0, len(data), 97))


def flip(data: bytes) -> bytes:
    """Return the data with a small change in everything that is stored twice."""
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
    """Changes values of the record, with valid checksums."""

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


MOMENTS = ("cut short", "applied", "confirmed", "after a reboot")


def bring_to(node: Worker, variant: Variant, plan: str, moment: str) -> None:
    """Bring the migration to one of :data:`MOMENTS`; no command and no timer runs then."""
    node.ask(Fresh(variant))
    at = "done empty ip nat" if moment == "cut short" else "done applied"
    assert do(node, "apply", plan, at=at, alone=True).killed
    if moment in ("confirmed", "after a reboot"):
        assert do(node, "confirm").error is None
    if moment == "after a reboot":
        node.ask(Forget(variant))


def insist_restored(node: Worker, variant: Variant) -> None:
    """Check that a rollback restores everything, and that another one finds nothing to do."""
    result = do(node, "rollback")
    assert result.error is None, result.error
    assert result.done
    insist_old(read_state(node, variant))
    again = do(node, "rollback")
    assert (again.error, again.done) == (None, False)


def insist_old(state: NodeState) -> None:
    """Check that the old IPv4 rules are loaded; the plan has only these, and a reboot loses those of IPv6."""
    assert state.iptables[0] == OLD[0]
    assert state.nft == (False, False)
    assert state.answered


def insist_on_commands(node: Worker, variant: Variant, copy: str = RULES) -> None:
    """Check that a rollback fails and prints commands; run these, and check that they restore the rules."""
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
    """Bring the migration to a moment, and then damage files of its state."""
    bring_to(node, variant, plan, moment)
    node.ask(Harm(kind, paths))


@dataclass(frozen=True)
class MakeOlder(Request):
    """Changes the state into that of an older version: JSON record, old plan, no checksum, no mark."""

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
    """Runs ``nfparity migrate`` on the node; returns its status, output and messages."""

    words: tuple[str, ...]

    def run(self, host: Host) -> tuple[int, str, str]:
        result = run_nfparity(("migrate", *self.words))
        return result.status, result.out, result.err
