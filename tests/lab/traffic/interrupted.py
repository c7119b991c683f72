"""A loader that waits after each step: a test then sends packets, and continues or kills it."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from typing import Final

from nfparity.tc import Installed
from tests.lab.traffic.host import Host, Request
from tests.lab.traffic.subjects import Rules, installable
from translate.ir import Family

__all__ = ["BeginLoad", "KillLoad", "NextStep"]

_KEPT: Final = "interrupted"


@dataclass(frozen=True, slots=True)
class BeginLoad(Request):
    """Starts a process that will load one family's rules, and waits before its first step."""

    family: Family
    rules: Rules

    def run(self, host: Host) -> None:
        """Start the process in the namespace of the host."""
        says, steps = os.pipe()
        waits, goes = os.pipe()
        loader = _Loader(says, goes)
        loader.pid = os.fork()
        if loader.pid:
            os.close(steps)
            os.close(waits)
            host.kept[_KEPT] = loader
            return
        status = 1
        try:
            os.close(says)
            os.close(goes)

            def stop(done: str) -> None:
                os.write(steps, f"{done}\n".encode())
                os.read(waits, 1)

            Installed(self.family, stop).load(installable(self.family, self.rules[self.family]))
            status = 0
        finally:
            os._exit(status)


@dataclass(frozen=True, slots=True)
class NextStep(Request):
    """Lets the loader make one more step; returns the step, None after its end."""

    def run(self, host: Host) -> str | None:
        """Let the loader continue."""
        loader: _Loader = host.kept[_KEPT]
        return loader.go()


@dataclass(frozen=True, slots=True)
class KillLoad(Request):
    """Kills the loader at its present step, and waits until its guard has undone the changes."""

    def run(self, host: Host) -> None:
        """Kill the loader."""
        loader: _Loader = host.kept.pop(_KEPT)
        loader.kill()


@dataclass(slots=True)
class _Loader:
    says: int
    goes: int
    pid: int = 0
    _begun: bool = False

    def go(self) -> str | None:
        if self._begun:
            os.write(self.goes, b"g")
        self._begun = True
        said = os.read(self.says, 4096).decode()
        if said:
            return said.rstrip("\n")
        os.waitpid(self.pid, 0)
        return None

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        while os.read(self.says, 4096):  # until the guard, which shares it, has ended
            pass
        self.close()

    def close(self) -> None:
        os.close(self.says)
        os.close(self.goes)
