"""The machine of a measurement: processor, memory, kernel and versions of the tools."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

from backends.tc_ebpf.programs.bcc import find_package
from backends.testbed.command import find_tool

__all__ = ["load_average", "machine"]

_TOOLS = ("iptables-legacy", "iptables-nft", "nft")


def machine() -> dict[str, str]:
    """Return the properties of this machine by name."""
    facts = {
        "processor": f"{os.cpu_count()} x {_processor()}",
        "memory": f"{_memory() / (1 << 20):.0f} GiB",
        "kernel": platform.release(),
        "Python": platform.python_version(),
    }
    for tool in _TOOLS:
        path = find_tool(tool)
        if path is not None:
            done = subprocess.run((path, "--version"), capture_output=True, text=True, check=False)
            facts[tool] = done.stdout.strip()
    package = find_package()
    if package is not None:
        version = package / "version.py"
        lines = version.read_text().splitlines() if version.is_file() else []
        facts["BCC"] = next((x.split("=")[1].strip(" '\"") for x in lines if "__version__" in x), "installed")
    return facts


def load_average() -> str:
    """Return the load average of the last minute."""
    return f"{os.getloadavg()[0]:.1f}"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def _memory() -> int:
    first = Path("/proc/meminfo").read_text().split()
    return int(first[1])
