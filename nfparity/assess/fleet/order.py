"""What is asked of every snapshot alike, and how a worker answers it for one."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from harness.diff.sampling import MISS
from nfparity.assess.catalogue import Version
from nfparity.assess.fleet.node import Answer, Failure, answer_of
from nfparity.assess.snapshots import Question, assess_snapshot
from nfparity.assess.summary import Summary
from nfparity.snapshot import Variant, load_snapshot
from translate.errors import InputError, MachineError
from translate.ir import Family, Interval

__all__ = ["Order", "answer"]

_ABLE: Final[set[str]] = set()
"""What this process has found to run on its machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """As :class:`nfparity.assess.snapshots.Question`, without the snapshot and without its node."""

    version: Version | None = None
    against: str | None = None
    given: str | None = None
    family: Family | None = None
    variant: Variant | None = None
    objects: str | None = None
    objects_name: str = ""
    service_ranges: Mapping[Family, Interval] = field(default_factory=dict)
    corpus: bool = True
    only: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    miss: float = MISS


def answer(order: Order, path: str) -> Answer:
    """Read the snapshot at ``path``, assess it, and return what is kept of that.

    Raises nothing: what goes wrong with one snapshot is its answer. Bad input stays bad; what the machine
    failed may be tried again, here or on another one.
    """
    try:
        return answer_of(_assess(order, path), path)
    except InputError as e:
        failure = Failure(2, str(e))
    except MachineError as e:
        failure = Failure(3, str(e), again=True)
    except MemoryError:
        failure = Failure(3, "not enough memory", again=True)
    except Exception as e:
        where = traceback.extract_tb(e.__traceback__)[-1]
        failure = Failure(
            1, f"a fault of nfparity: {type(e).__name__}: {e} ({where.name}, line {where.lineno})"
        )
    return Answer(path=path, failure=failure)


def _assess(order: Order, path: str) -> Summary:
    snapshot = load_snapshot(path)
    question = Question(
        snapshot=snapshot,
        version=order.version,
        against=order.against,
        given=order.given,
        family=order.family,
        variant=order.variant,
        objects=snapshot.objects if order.objects is None else order.objects,
        objects_name=f"{path}/objects.json" if order.objects is None else order.objects_name,
        service_ranges=order.service_ranges,
        corpus=order.corpus,
        only=order.only,
        options=order.options,
        miss=order.miss,
    )
    return assess_snapshot(question, progress=_silent, able=_ABLE)


def _silent(backend: str, done: int, total: int) -> None:
    """A worker has nobody to tell."""
