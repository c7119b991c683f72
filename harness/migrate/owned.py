"""The nftables table that nfparity owns, in this network namespace: loaded in two steps, listed, deleted.

A base chain is hooked in while its transaction is being prepared (``nf_tables_addchain``), and its rules
are there only from the commit on: until then its policy decides. And when a table is deleted its rules go
with the commit and its hooks after that. So a chain of ours whose policy is DROP begins and ends with ACCEPT,
and drops only between; the rules that it replaces, or is replaced by, are in force then.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Final

from backends.kernel.libnftables import NftHandle
from harness.migrate.tool import run_tool
from translate.errors import MachineError
from translate.ir import Family, Policy
from translate.nft import TABLE, NftOutput
from translate.nft.render import structure_text

__all__ = ["accepting", "delete_table", "dropping", "is_there", "list_table", "load", "set_policies"]

_ABSENT: Final = "No such file or directory"


def accepting(output: NftOutput) -> str:
    """Return the text that loads the table with ACCEPT for the policy of every chain."""
    chains = [
        dataclasses.replace(c, base=dataclasses.replace(c.base, policy=Policy.ACCEPT)) if c.base else c
        for c in output.structure.chains
    ]
    return structure_text(dataclasses.replace(output.structure, chains=chains))


def dropping(output: NftOutput) -> tuple[str, ...]:
    """Return the base chains whose policy is DROP."""
    return tuple(c.name for c in output.structure.chains if c.base and c.base.policy is Policy.DROP)


def load(text: str) -> None:
    """Run one transaction. Raises MachineError, and nothing has changed."""
    handle = NftHandle()
    try:
        handle.run(text)
    finally:
        handle.close()


def set_policies(family: Family, chains: tuple[str, ...], policy: Policy) -> None:
    """Give base chains a policy, in one transaction; those that are gone are left out. MachineError."""
    there = _chains(family)
    named = [name for name in chains if name in there]
    if named:
        load("".join(f"chain {family.value} {TABLE} {n} {{ policy {policy.lower()}; }}\n" for n in named))


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
    done = run_tool(("nft", "-j", "list", "table", family.value, TABLE))
    if done.returncode:
        if _ABSENT in done.stderr:
            return None
        raise MachineError(f"nft: {done.stderr.strip()}")
    return done.stdout


def _chains(family: Family) -> set[str]:
    found = (one["chain"] for one in _list("chains") if "chain" in one)
    return {c["name"] for c in found if c["table"] == TABLE and c["family"] == family.value}


def _list(what: str) -> list[dict[str, dict[str, str]]]:
    done = run_tool(("nft", "-j", "list", what))
    if done.returncode:
        raise MachineError(f"nft: {done.stderr.strip()}")
    found: list[dict[str, dict[str, str]]] = json.loads(done.stdout)["nftables"]
    return found
