"""A test for KVM that boots something under it.

The device node proves nothing: nested or restricted machines show ``/dev/kvm`` and then fail an assertion on
an MSR (``-cpu host``) or hang where the firmware hands over to the kernel. So the kernel itself is started
under KVM, without a root file system, and must come as far as missing it; a time limit tells a hang. The
answer holds until the machine reboots and is kept in the build folder.
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
# A working KVM gets there in one or two seconds.
LIMIT = 20.0
# What a kernel prints when it has started all its subsystems and finds no root to mount.
REACHED = b"Kernel panic - not syncing: VFS: Unable to mount root fs"


@dataclass(frozen=True, slots=True)
class Acceleration:
    """``kvm`` says which one; ``reason`` says why, for the log."""

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
        pass  # never asked, or an interrupted write: ask again
    answer = probe_kvm(image, qemu=qemu)
    memory.parent.mkdir(parents=True, exist_ok=True)
    memory.write_text(json.dumps({"key": key, "kvm": answer.kvm, "reason": answer.reason}) + "\n")
    return answer


def probe_kvm(image: Path, *, qemu: str = QEMU, limit: float = LIMIT) -> Acceleration:
    """Boot a kernel under KVM with no root and see how far it comes within ``limit`` seconds."""
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
