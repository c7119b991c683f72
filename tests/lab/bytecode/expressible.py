"""The part of a Program that nftables can express."""

from __future__ import annotations

from dataclasses import replace

from translate.errors import Refusal, UnsupportedError
from translate.ir import Program
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
            origins = {refusal.origin for refusal in e.refusals}
            chains = tuple(
                replace(chain, statements=tuple(s for s in chain.statements if s.origin not in origins))
                for chain in program.chains
            )
            assert chains != program.chains, "a refusal that belongs to no statement"
            program = replace(program, chains=chains)
