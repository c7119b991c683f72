"""The result of a differential test: differences, and a report for each backend."""

from __future__ import annotations

from enum import StrEnum

from harness.status import DIFFERENCES, DONE, NOT_TESTED
from translate.dataclass import dataclass
from translate.errors import Note
from translate.ir import Origin

__all__ = ["BackendReport", "CaseResult", "Difference", "ParityReport", "Result"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One difference of one backend, ready to be printed.

    ``rules`` are the reference's deciding rules, each as ``file:line: rule``; ``origins`` are their positions
    in ``rules_path``; ``branch`` is the index of the reference's branch, None if there is none to compare
    with; ``command`` replays only this flow.
    """

    backend: str
    flow_id: str
    flow_source: str
    step: int | None
    step_text: str
    field: str
    expected: object
    observed: object
    rules: tuple[str, ...]
    command: str
    rules_path: str = ""
    origins: tuple[Origin, ...] = ()
    branch: int | None = None


class Result(StrEnum):
    """The result of the whole run."""

    PARITY = "parity"
    DIFFERENCES = "differences"
    NOT_TESTED = "not tested"
    """No difference was observed, but a requested backend did not run all flows."""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of one flow on one backend: the time of its runs, or the reason why it did not run."""

    flow_id: str
    seconds: float = 0.0
    untested: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendReport:
    """The result of one backend.

    ``untested`` are the reasons why it did not run some flows. ``skipped`` is the reason why a backend that
    was not requested by name cannot run here. ``cases`` are all flows that it should have run.
    """

    name: str
    flows: int = 0
    differing: int = 0
    untested: tuple[str, ...] = ()
    skipped: str | None = None
    cases: tuple[CaseResult, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ParityReport:
    """The result of a whole comparison. ``differences`` are in the order of backends and flows.

    ``chancy`` is the number of flows with random outcomes, and ``repeated`` the number of their additional
    runs; ``miss`` is the chance, per flow and backend, that an outcome was not observed. The rules in
    ``open_rules`` leave the outcome of ``left_open`` flows open: a backend agrees with any possible outcome.
    ``notes`` are known differences without a packet. ``level`` is None if nothing was translated, because
    only a given ruleset ran.
    """

    level: int | None
    flows: int
    chancy: int
    repeated: int
    miss: float
    left_open: int
    open_rules: tuple[str, ...]
    share_tests: int
    false_alarm_rate: float
    backends: tuple[BackendReport, ...]
    differences: tuple[Difference, ...]
    assumed: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def result(self) -> Result:
        """The overall result: an observed difference counts more than an untested flow."""
        if self.differences:
            return Result.DIFFERENCES
        return Result.NOT_TESTED if any(report.untested for report in self.backends) else Result.PARITY

    @property
    def status(self) -> int:
        """The exit status of this result."""
        match self.result:
            case Result.PARITY:
                return DONE
            case Result.DIFFERENCES:
                return DIFFERENCES
            case Result.NOT_TESTED:
                return NOT_TESTED

    @property
    def parity(self) -> bool:
        """True if everything was tested and no difference was observed."""
        return self.result is Result.PARITY
