"""The nftables table that nfparity owns, in this network namespace: loaded, listed, deleted.

All its rules are in force from one moment on (the change of generation in ``nf_tables_commit``); before that
its base chains are hooked in without rules, and accept, because a policy that drops is set after it
(``nft_chain_commit_drop_policy``). When it is deleted its chains keep their rules until their hooks are gone
(``nf_tables_commit_chain_prepare`` leaves out chains that are not in the next generation).
"""

from __future__ import annotations

import json
from typing import Final

from backends.kernel.command import run
from backends.kernel.libnftables import NftHandle
from translate.errors import MachineError
from translate.ir import Family
from translate.nft import TABLE

__all__ = ["delete_table", "is_there", "list_table", "load"]

_ABSENT: Final = "No such file or directory"


def load(text: str) -> None:
    """Run one transaction. Raises MachineError, and nothing has changed."""
    handle = NftHandle()
    try:
        handle.run(text)
    finally:
        handle.close()


def delete_table(family: Family) -> None:
    """Delete the table, if it is there. MachineError."""
    if is_there(family):
        load(f"delete table {family.value} {TABLE}\n")


def is_there(family: Family) -> bool:
    """Whether the table is there."""
    return any(
        one["table"]["name"] == TABLE and one["table"]["family"] == family.value
        for one in _list("tables")
        if "table" in one
    )


def list_table(family: Family) -> str | None:
    """Return what ``nft -j list table`` prints, None when there is no table. MachineError."""
    done = run(("nft", "-j", "list", "table", family.value, TABLE), inherit=True)
    if done.returncode:
        if _ABSENT in done.stderr:
            return None
        raise MachineError(f"nft: {done.stderr.strip()}")
    return done.stdout


def _list(what: str) -> list[dict[str, dict[str, str]]]:
    done = run(("nft", "-j", "list", what), inherit=True)
    if done.returncode:
        raise MachineError(f"nft: {done.stderr.strip()}")
    found: list[dict[str, dict[str, str]]] = json.loads(done.stdout)["nftables"]
    return found
