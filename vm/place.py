"""The place of the differential test: a guest under KVM, the running kernel, or an emulated guest."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from translate.errors import InputError, MachineError
from vm.accel import DEVICE, Acceleration

__all__ = ["Choice", "Place", "choose", "offers_virtualisation"]

CPUINFO = Path("/proc/cpuinfo")


class Place(StrEnum):
    """A place to run the test, as ``VM=`` names it."""

    KVM = "kvm"
    """A guest with a Debian kernel, under KVM."""
    HOST = "host"
    """Network namespaces on the running kernel; needs root."""
    EMULATED = "emulated"
    """A guest with a Debian kernel, under QEMU's emulation: many times slower."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen place, and the reason to print."""

    place: Place
    reason: str


def offers_virtualisation(*, cpuinfo: Path = CPUINFO, device: Path = DEVICE) -> Acceleration:
    """Return whether KVM may work here, according to files that can be read without QEMU.

    A processor without ``vmx`` or ``svm`` cannot run a guest at full speed, even if ``/dev/kvm`` exists: a
    machine that is itself a guest may have the device, and then emulate each instruction.
    """
    if not device.exists():
        return Acceleration(kvm=False, reason=f"{device} does not exist")
    if not os.access(device, os.R_OK | os.W_OK):
        return Acceleration(kvm=False, reason=f"no permission to use {device}")
    flags = next((line for line in cpuinfo.read_text().splitlines() if line.startswith("flags")), "")
    if flags and not {"vmx", "svm"} & set(flags.split()):
        return Acceleration(kvm=False, reason="the processor offers neither vmx nor svm here")
    return Acceleration(kvm=True, reason=f"{device} can be opened")


def choose(
    requested: Place | None,
    *,
    guest_needed: bool,
    root: bool,
    kvm: Callable[[], Acceleration],
) -> Choice:
    """Return the place of the test: the ``requested`` one, or else the fastest that is valid.

    ``guest_needed``: the user has named a kernel, so the test must run in a guest. ``kvm`` tests whether KVM
    works; it is called only if necessary, because the test may need QEMU and a kernel. Raises InputError for
    a named kernel on the host, MachineError when KVM is requested and does not work.
    """
    if requested is Place.HOST and guest_needed:
        raise InputError("KERNEL= always means a guest; leave it out, or leave out VM=host")
    if requested is Place.HOST or requested is Place.EMULATED:
        return Choice(requested, "requested")
    answer = kvm()
    if requested is Place.KVM and not answer.kvm:
        raise MachineError(f"VM=kvm does not work here: {answer.reason}")
    if answer.kvm:
        return Choice(Place.KVM, answer.reason)
    if guest_needed:
        return Choice(Place.EMULATED, f"a kernel was named, and {answer.reason}")
    if root:
        return Choice(Place.HOST, f"no KVM ({answer.reason}); root may use the running kernel")
    return Choice(Place.EMULATED, f"no KVM ({answer.reason}), and only root can use the running kernel")
