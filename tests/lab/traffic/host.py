"""A process that has a network namespace of its own, or has joined another process's.

A request is an object whose method ``run`` is called there with the :class:`Host`, and returns the answer.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from backends.testbed.command import die_with_parent, find_tool, run
from backends.testbed.offloads import Offload, switch_off
from tests.lab.mountnamespace import enter_mount_namespace, mount
from translate.errors import MachineError

__all__ = [
    "ChecksumsInSoftware",
    "Daemon",
    "Host",
    "Ip",
    "Join",
    "Request",
    "Start",
    "Sysctls",
    "Tool",
    "ToolOutput",
]

_CLONE_NEWNET: Final = 0x40000000


@dataclass(slots=True)
class Host:
    """The process of one namespace, and the objects that it keeps between requests, by name."""

    name: str
    kept: dict[str, Any] = field(default_factory=dict)

    def __call__(self, request: Any) -> Any:
        """Answer a request of the parent."""
        if not isinstance(request, Request):
            raise TypeError(f"no such request: {request!r}")
        return request.run(self)

    def close(self) -> None:
        """Close every kept object that can be closed."""
        for thing in reversed(self.kept.values()):
            close = getattr(thing, "close", None)
            if close is not None:
                close()


class Request(ABC):
    """A request that runs in a host's process. The parent sends it pickled."""

    @abstractmethod
    def run(self, host: Host) -> Any:
        """Run the request; the result is sent back pickled."""


@dataclass(frozen=True, slots=True)
class Start:
    """Starts a host in the fresh namespace of its process, and sets sysctls before there are devices.

    ``requests`` are types of later requests: the fork server imports their modules, once for all of its
    hosts.
    """

    name: str
    sysctls: Mapping[str, str]
    requests: tuple[type[Request], ...] = ()

    def __call__(self) -> Host:
        """Start the host."""
        _own_mounts()
        _set_sysctls(self.sysctls)
        return Host(self.name)


@dataclass(frozen=True, slots=True)
class Join:
    """Starts a process that shares the namespace of ``pid``, for example to send packets."""

    name: str
    pid: int

    def __call__(self) -> Host:
        """Join the namespace; raises MachineError if the other process has ended."""
        libc = ctypes.CDLL(None, use_errno=True)
        try:
            fd = os.open(f"/proc/{self.pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as e:
            raise MachineError(f"there is no process {self.pid} to join: {e.strerror}") from e
        try:
            if libc.setns(fd, _CLONE_NEWNET):
                raise MachineError(f"cannot join a namespace: {os.strerror(ctypes.get_errno())}")
        finally:
            os.close(fd)
        return Host(self.name)


@dataclass(frozen=True, slots=True)
class Ip(Request):
    """Runs ``ip -batch``; raises MachineError with ip's message."""

    batch: str

    def run(self, host: Host) -> None:
        """Run ip."""
        done = run(("ip", "-batch", "-"), self.batch)
        if done.returncode:
            raise MachineError(f"ip, on {host.name}: {done.stderr.strip()}")


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The output of a tool, and its exit status."""

    status: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Tool(Request):
    """Runs a tool to its end. Raises MachineError if it is not installed."""

    command: tuple[str, ...]
    text: str = ""

    def run(self, host: Host) -> ToolOutput:
        """Run the tool."""
        done = run(self.command, self.text)
        return ToolOutput(done.returncode, done.stdout, done.stderr)


@dataclass(frozen=True, slots=True)
class ChecksumsInSoftware(Request):
    """Makes the kernel compute checksums itself for packets that leave by ``device``.

    A veth pair claims to compute checksums in hardware but does not, and the receiver does not check them.
    """

    device: str

    def run(self, host: Host) -> None:
        """Switch the offload off."""
        switch_off(self.device, Offload.TX_CHECKSUM)


@dataclass(frozen=True, slots=True)
class Sysctls(Request):
    """Sets sysctls, by their paths below /proc/sys."""

    values: Mapping[str, str]

    def run(self, host: Host) -> None:
        """Set the sysctls."""
        _set_sysctls(self.values)


def _own_mounts() -> None:
    """Give this process a ``/run`` and a BPF file system of its own, which end with it."""
    enter_mount_namespace()
    for kind, target in (("tmpfs", Path("/run")), ("bpf", Path("/sys/fs/bpf"))):
        try:
            mount("none", target, kind)
        except OSError as e:
            raise MachineError(f"cannot mount on {target}: {e.strerror}") from e


def _set_sysctls(values: Mapping[str, str]) -> None:
    """Set sysctls of this process's namespace; MachineError when one is refused."""
    for name, value in values.items():
        try:
            Path("/proc/sys", name).write_text(value)
        except OSError as e:
            raise MachineError(f"cannot set sysctl {name} to {value}: {e.strerror}") from e


@dataclass(slots=True)
class Daemon:
    """A program that runs until the host closes, or its process is killed."""

    process: subprocess.Popen[bytes]

    @classmethod
    def start(cls, command: tuple[str, ...]) -> Daemon:
        """Start the program in this namespace. Raises MachineError if it is not installed."""
        path = find_tool(command[0])
        if path is None:
            raise MachineError(f"{command[0]} is not installed")
        process = subprocess.Popen(
            (path, *command[1:]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=die_with_parent,
        )
        return cls(process)

    def close(self) -> None:
        """Kill the program."""
        self.process.kill()
        self.process.wait()
