"""The part of a Program that nftables can express."""

from __future__ import annotations

from dataclasses import replace

from translate.errors import Refusal, UnsupportedError
from translate.ir import Origin, Program, Statement, alternatives
from translate.nft import NftOutput, emit

__all__ = ["expressible"]


def expressible(program: Program) -> tuple[Program, NftOutput, tuple[Refusal, ...]]:
    """Return the Program without the statements that are refused, its text, and the refusals."""
    refused: list[Refusal] = []
    while True:
        try:
            return program, emit(program), tuple(refused)
        except UnsupportedError as e:
            refused += e.refusals
            places = {_place(refusal.origin) for refusal in e.refusals}
            chains = tuple(
                replace(chain, statements=tuple(s for s in chain.statements if places.isdisjoint(_places(s))))
                for chain in program.chains
            )
            assert chains != program.chains, "a refusal that belongs to no statement"
            program = replace(program, chains=chains)


def _places(statement: Statement) -> set[Origin]:
    """Return the places of a statement and of its entries or branches."""
    origins = (statement.origin, *(alternative.origin for alternative in alternatives(statement)))
    return set(map(_place, origins))


def _place(origin: Origin) -> Origin:
    """Return the origin as that of a single rule, also if it stands for several rules."""
    return replace(origin, several=False)
