"""``choose``: a ladder of ``statistic --mode random`` rules becomes one draw.

*Before*: a normalised Program without unreachable chains, because the facts at the entry of a chain are those
on which all its callers agree.

*After*: two or more consecutive statements that share their tests and have one ``Random`` each, the last
perhaps none, are replaced by one :class:`Choose` with those tests.

*Why the meaning is preserved*: rung *k* is drawn with probability ``p_k`` for packets that no rung before it
took, so its share of all packets is ``(1-p_1)…(1-p_(k-1)) p_k``. The shared tests see the same packet at
every rung, because a rung that was not drawn did nothing. If control comes back from the actions of a rung,
the ladder continues with the next rung and draws *again*, while a Choose continues after all of them. So
every rung except the last must be proven to leave the chain or to end the table (``control.leaves``). The
proof uses the tests of the callers: the DNAT of a KUBE-SEP chain tests for the protocol that KUBE-SERVICES
looked up. The ladder is cut after a rung without a proof.

Shares are whole parts of 2**31; otherwise the ladder is not changed. The one exception is kube-proxy's equal
split, ``1/n, 1/(n-1), …, 1/2`` and a last rung without a draw, each rounded to an integer over 2**31. There
every branch's share is within two parts in 2**31 of ``1/n`` (rounding shifts rung *k* by less than
``(n-k)/n`` parts by itself and by less than ``(k + ln n)/n`` through the rungs before it), and ``equal``
marks it. No test of reasonable size can detect the difference: a bias of 2**-30 shows after 2**58 draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

from translate.dataclass import dataclass, replace
from translate.ir import (
    RANDOM_RANGE,
    Apply,
    Branch,
    Choose,
    LoweredChain,
    Program,
    Random,
    Statement,
    Test,
)
from translate.passes.control import leaves, plain
from translate.passes.facts import Facts, entry_facts, refine
from translate.passes.structural_sharing import holding

__all__ = ["choose"]


@dataclass(frozen=True, slots=True)
class _Rung:
    shared: tuple[Test, ...]
    numerator: int
    statement: Apply


def choose(program: Program) -> Program:
    """Return the Program with one draw in place of each ladder for which this is proven to be exact."""
    chains = {chain.name: chain for chain in program.chains}
    facts = entry_facts(program)
    return replace(
        program,
        chains=tuple(
            holding(chain, _statements(chain, facts[chain.name], chains, program))
            if any(map(_draws, chain.statements))
            else chain
            for chain in program.chains
        ),
    )


def _statements(
    chain: LoweredChain, facts: Facts, chains: Mapping[str, LoweredChain], program: Program
) -> list[Statement]:
    kept: list[Statement] = []
    index = 0
    while index < len(chain.statements):
        ladder = _ladder(chain.statements, index)
        if not ladder:
            kept.append(chain.statements[index])
        for piece in _provable(ladder, facts, chains, program):
            drawn = _draw(piece)
            kept.extend([drawn] if drawn is not None else [rung.statement for rung in piece])
        index += max(len(ladder), 1)
    return kept


def _provable(
    ladder: Sequence[_Rung], facts: Facts, chains: Mapping[str, LoweredChain], program: Program
) -> Iterator[Sequence[_Rung]]:
    """Cut the ladder after every rung from which control may continue to the next one."""
    start = 0
    for end, rung in enumerate(ladder, start=1):
        facts_here = refine(facts, rung.shared, program.family)
        if end == len(ladder) or not leaves(rung.statement.actions, facts_here, chains, program.family):
            yield ladder[start:end]
            start = end


def _ladder(statements: Sequence[Statement], start: int) -> list[_Rung]:
    rungs: list[_Rung] = []
    if not _draws(statements[start]):
        return rungs
    for index in range(start, len(statements)):
        rung = _rung(statements[index])
        if rung is None or (rungs and frozenset(rung.shared) != frozenset(rungs[0].shared)):
            break
        if rung.numerator == RANDOM_RANGE and not rungs:
            break
        rungs.append(rung)
        if rung.numerator == RANDOM_RANGE:
            break
    return rungs


def _draws(statement: Statement) -> bool:
    """Return whether a ladder may begin here."""
    for test in statement.tests:  # noqa: SIM110  # called for every statement: a generator doubles the cost
        if isinstance(test, Random):
            return True
    return False


def _rung(statement: Statement) -> _Rung | None:
    if not isinstance(statement, Apply):
        return None
    draws = [test for test in statement.tests if isinstance(test, Random)]
    shared = tuple(test for test in statement.tests if not isinstance(test, Random))
    if len(draws) > 1 or not plain(shared):
        return None
    numerator = RANDOM_RANGE
    if draws:
        numerator = RANDOM_RANGE - draws[0].numerator if draws[0].negated else draws[0].numerator
    return _Rung(shared, numerator, statement) if 0 < numerator <= RANDOM_RANGE else None


def _draw(ladder: Sequence[_Rung]) -> Choose | None:
    if len(ladder) < 2:
        return None
    split = _split(tuple([rung.numerator for rung in ladder]))
    if split is None:
        return None
    branches = [
        Branch(weight=weight, actions=rung.statement.actions, origin=rung.statement.origin)
        for weight, rung in zip(split.weights, ladder, strict=True)
    ]
    if split.left:
        branches.append(Branch(weight=split.left, actions=(), origin=ladder[-1].statement.origin))
    return Choose(
        branches=tuple(branches),
        equal=split.equal,
        tests=ladder[0].shared,
        origin=ladder[0].statement.origin,
    )


@dataclass(frozen=True, slots=True)
class _Split:
    """The shares of a ladder in 2**31: the weight of each rung, and the rest (``left``)."""

    weights: tuple[int, ...]
    left: int
    equal: bool


@lru_cache(maxsize=1024)
def _split(numerators: tuple[int, ...]) -> _Split | None:
    """Return the shares of a ladder's rungs, or None if they are not whole."""
    shares: list[Fraction] = []
    remaining = Fraction(RANDOM_RANGE)
    for numerator in numerators:
        shares.append(remaining * numerator / RANDOM_RANGE)
        remaining -= shares[-1]
    if _is_equal_split(numerators):
        return _Split(tuple(_whole(shares)), 0, equal=True)
    if any(share.denominator != 1 for share in (*shares, remaining)):
        return None
    return _Split(tuple([int(share) for share in shares]), int(remaining), equal=False)


def _is_equal_split(numerators: Sequence[int]) -> bool:
    n = len(numerators)
    return numerators[-1] == RANDOM_RANGE and all(
        abs(numerator - Fraction(RANDOM_RANGE, n - k)) <= 1 for k, numerator in enumerate(numerators)
    )


def _whole(shares: Sequence[Fraction]) -> list[int]:
    """Round shares that sum to 2**31 to integers with the same sum, by largest remainder."""
    whole = [int(share) for share in shares]
    by_remainder = sorted(range(len(shares)), key=lambda k: (whole[k] - shares[k], k))
    for k in by_remainder[: RANDOM_RANGE - sum(whole)]:
        whole[k] += 1
    return whole
