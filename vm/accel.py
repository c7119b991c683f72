"""A test whether KVM works, by booting a kernel under it.

The existence of ``/dev/kvm`` is not enough: on nested or restricted machines QEMU may fail an assertion about
an MSR (``-cpu host``), or hang when the firmware starts the kernel. So the kernel itself is started under
KVM, without a root file system. KVM works if the kernel reports within a time limit that it finds no root
file system. The result is stored in the build folder, and is valid until the next reboot.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

__all__ = ["QEMU", "Acceleration", "find_acceleration", "probe_kvm"]

QEMU = "qemu-system-x86_64"
DEVICE = Path("/dev/kvm")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
# Under a working KVM, the kernel reports this in one or two seconds.
LIMIT = 20.0
# The kernel's message when all its subsystems have started and it finds no root file system to mount.
REACHED = b"Kernel panic - not syncing: VFS: Unable to mount root fs"


@dataclass(frozen=True, slots=True)
class Acceleration:
    """The result of the test: ``kvm`` is True for KVM, False for emulation; ``reason`` is for the log."""

    kvm: bool
    reason: str


def find_acceleration(image: Path, *, build: Path, device: Path = DEVICE, qemu: str = QEMU) -> Acceleration:
    """Return KVM if it works with this kernel image, otherwise emulation with the reason."""
    if not device.exists():
        return Acceleration(kvm=False, reason=f"{device} does not exist")
    if not os.access(device, os.R_OK | os.W_OK):
        return Acceleration(kvm=False, reason=f"no permission to use {device}")
    memory = build / "vm" / "kvm.json"
    key = f"{BOOT_ID.read_text().strip()} uid {os.geteuid()} {qemu}"
    try:
        remembered = json.loads(memory.read_text())
        if remembered["key"] == key:
            return Acceleration(kvm=bool(remembered["kvm"]), reason=str(remembered["reason"]))
    except (OSError, ValueError, KeyError, TypeError):
        pass  # not tested yet, or an interrupted write: test again
    answer = probe_kvm(image, qemu=qemu)
    memory.parent.mkdir(parents=True, exist_ok=True)
    memory.write_text(json.dumps({"key": key, "kvm": answer.kvm, "reason": answer.reason}) + "\n")
    return answer


def probe_kvm(image: Path, *, qemu: str = QEMU, limit: float = LIMIT) -> Acceleration:
    """Boot a kernel under KVM without a root file system; return whether it starts in ``limit`` seconds."""
    command = [
        qemu,
        *("-accel", "kvm", "-cpu", "host", "-m", "512", "-smp", "2"),
        *("-kernel", str(image), "-append", "console=ttyS0 panic=-1"),
        *("-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio"),
    ]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Acceleration(kvm=False, reason=f"{DEVICE} exists, but a kernel under it hangs")
    except OSError as error:
        return Acceleration(kvm=False, reason=f"cannot run {qemu}: {error.strerror}")
    if REACHED in done.stdout:
        return Acceleration(kvm=True, reason=f"a kernel boots under {DEVICE}")
    last = (done.stdout.decode(errors="replace").strip().splitlines() or ["no output"])[-1]
    return Acceleration(kvm=False, reason=f"{DEVICE} exists, but a kernel under it fails: {last.strip()}")
