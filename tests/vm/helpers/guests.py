"""Tests in guests: the kernels, the marks of such tests, and running pytest in a guest."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Final

import pytest

import vm.__main__
from vm.accel import QEMU

__all__ = ["IN_A_GUEST", "KERNELS", "run_in_guest"]

KERNELS: Final = tuple(os.environ.get("KERNEL", "").split()) or ("6.1", "6.12")
"""The series of Debian's kernels: those of ``make test-vm KERNEL=…``, or all that are tested."""

IN_A_GUEST: Final = [
    pytest.mark.vm,
    pytest.mark.skipif(
        shutil.which(QEMU) is None,
        reason=f"{QEMU} is not installed; make test-vm installs it, and takes an hour without KVM",
    ),
]
"""The marks of a test that starts a guest. ``make test`` leaves these tests out."""

_LIMIT: Final = 4 * 3600
"""Seconds after which a guest is ended. Emulated on a busy machine it may need an hour."""


def run_in_guest(series: str, *arguments: str, environment: str | None = None) -> int:
    """Run pytest with these arguments on a kernel, and return its exit status.

    ``environment`` is an assignment, such as ``NFPARITY_REPORTS=folder``.
    """
    # The project's folder cannot be written in the guest.
    settings = ["HYPOTHESIS_STORAGE_DIRECTORY=/run/tmp/hypothesis"]
    if environment is not None:
        settings.append(environment)
    command = (
        "env",
        *settings,
        sys.executable,
        "-m",
        "pytest",
        "-v",
        "-n0",
        "-p",
        "no:cacheprovider",
        "-rsP",
    )
    limit = ("--limit", str(_LIMIT))
    return vm.__main__.main(["--kernel", series, "--without-tc", *limit, "--", *command, *arguments])
