"""The tc-ebpf backend: translates rules in this process, then loads and replays them in a child process."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final

from backends.model.sourceports import gives_source_ports
from backends.tc_ebpf.node.routingrules import check_routing
from backends.tc_ebpf.programs.bcc import find_headers, find_package, headers_package
from translate.bpf import BACKEND, emit
from translate.dataclass import dataclass
from translate.ir import Family, Program

if TYPE_CHECKING:
    from backends.model.contract import Availability, Job
    from backends.replay.session import KernelSession

__all__ = ["TcEbpfBackend"]


@dataclass(frozen=True, slots=True)
class TcEbpfBackend:
    """Runs packets through the tc eBPF translation, without netfilter.

    With ``direct``, packets that the stack would only forward bypass it. Without ``cached``, the program is
    always compiled.
    """

    name: str = BACKEND
    direct: bool = True
    cached: bool = True

    def probe(self) -> Availability:
        """Return whether BCC, kernel headers, clsact and all other requirements are available."""
        from backends.model.contract import Availability

        if find_package() is None:
            return Availability(False, "BCC is not installed (Debian package python3-bpfcc)")
        if find_headers() is None:
            return Availability(False, f"no kernel headers (Debian package {headers_package()})")
        from backends.replay.availability import kernel_lacks
        from backends.tc_ebpf.loader import TcEbpfLoader

        return kernel_lacks(TcEbpfLoader(emit(NO_RULES)))

    def open(self, job: Job) -> AbstractContextManager[KernelSession]:
        """Translate the job's rules and load them into a fresh node.

        Raises UnsupportedError also for rules that need the routing rules of the node.
        """
        from backends.replay.session import open_session
        from backends.tc_ebpf.loader import TcEbpfLoader
        from translate.condense import lower, whole_program

        check_routing(job.node, job.rules.sample)
        output = emit(whole_program(lower(job.rules, level=job.level)))
        loader = TcEbpfLoader(output, direct=self.direct, cached=self.cached)
        loader.gives_ports = gives_source_ports(job.ruleset)
        return open_session(job.node, loader, limits=output.notes)


NO_RULES: Final = Program(family=Family.IP, chains=())
