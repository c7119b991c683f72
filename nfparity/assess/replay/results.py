"""Results of flows in normal form, which may be made when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from backends.model.flow import Flow
from backends.model.outcome import FlowResult
from harness.diff.paths import normal_paths
from nfparity.assess.replay.alike import Renaming
from translate.dataclass import dataclass, replace

__all__ = ["Results", "normal_result", "renamed_result"]


@dataclass(frozen=True, slots=True)
class Results(Mapping[str, FlowResult]):
    """Results by the id of their flow, each made anew when it is read.

    Only the comparison of orders reads them, and most nodes have no other order to compare.
    """

    makers: Mapping[str, Callable[[], FlowResult]]

    def __getitem__(self, flow_id: str) -> FlowResult:
        """Return the result of a flow. Raises KeyError."""
        return self.makers[flow_id]()

    def __contains__(self, flow_id: object) -> bool:
        """Return whether there is a result of the flow."""
        return flow_id in self.makers

    def __iter__(self) -> Iterator[str]:
        """Yield the ids."""
        return iter(self.makers)

    def __len__(self) -> int:
        """Return the number of flows."""
        return len(self.makers)


def normal_result(flow: Flow, observed: FlowResult) -> FlowResult:
    """Return an observed result with its paths in their normal form."""
    return replace(observed, branches=normal_paths(flow, observed.branches, runs=observed.runs))


def renamed_result(renaming: Renaming, first: Flow, observed: FlowResult, flow: Flow) -> FlowResult:
    """Return the result of a flow, given that of the first flow of its class."""
    return renaming.result(normal_result(first, observed), flow)
