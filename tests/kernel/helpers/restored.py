"""The results of both real iptables for a text: its refusal, or the rules saved after loading it.

They run in a child, in a network namespace of its own, where there are the ipsets and the accounting objects
that texts name. The names of ports have the same numbers there as in nfparity's table, for every protocol.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from backends.testbed.command import own_xtables_lock
from backends.testbed.netlink import Accounting
from tests.kernel.helpers.ownmounts import IN_OWN_MOUNTS
from tests.lab.mountnamespace import MS_BIND, mount
from translate.ir import Family
from translate.read.spelling.names import PROTOCOLS
from translate.read.spelling.services import SERVICES

__all__ = ["Restorer", "Verdicts", "restorer"]

VARIANTS = ("legacy", "nft")
COMMANDS = {Family.IP: "iptables", Family.IP6: "ip6tables"}
SETS = (("nets", "hash:net"), ("pairs", "hash:ip,port"))
SET_FAMILY = {Family.IP: "inet", Family.IP6: "inet6"}
WITH_PORTS = ("tcp", "udp", "sctp", "dccp", "udplite")
EVERY = (("ip", 0), ("hopopt", 0))
ACCOUNTS = ("one", "DEFAULT", "a.b-c_1", "a" * 31)


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The rules that each variant saves after loading a text (None if it refuses the text), and its
    message.
    """

    saved: dict[str, str | None]
    said: dict[str, str]

    @property
    def accepted(self) -> bool:
        """True if either variant accepts the text."""
        return any(text is not None for text in self.saved.values())


class Restorer:
    """Loads texts of one family in the child, and returns its results."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self._child = child

    def ask(self, text: str) -> Verdicts:
        """Load a text of one table with each variant, in place of the loaded table."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(json.dumps(text) + "\n")
        self._child.stdin.flush()
        return Verdicts(*json.loads(self._child.stdout.readline()))


@contextmanager
def restorer(family: Family = Family.IP) -> Iterator[Restorer]:
    """Start the child, and end it after the block."""
    words = (
        "unshare",
        "--net",
        "--kill-child",
        sys.executable,
        "-m",
        "tests.kernel.helpers.restored",
        family.value,
    )
    command = [*IN_OWN_MOUNTS, *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        yield Restorer(child)


def _with_names(folder: Path, texts: Mapping[str, str]) -> None:
    """Put files into ``/etc``, in this mount namespace; a minimal Debian lacks them."""
    before, now = folder / "before", folder / "now"
    before.mkdir()
    now.mkdir()
    mount("/etc", before, flags=MS_BIND)
    for entry in before.iterdir():
        if entry.name not in texts:
            (now / entry.name).symlink_to(entry)
    for name, text in texts.items():
        (now / name).write_text(text)
    mount(str(now), Path("/etc"), flags=MS_BIND)


def _child(family: Family) -> None:
    command = COMMANDS[family]
    ports = [f"{name} {port}/{proto}\n" for name, port in SERVICES.items() for proto in WITH_PORTS]
    protocols = [f"{name} {number}\n" for name, number in (*EVERY, *PROTOCOLS.items())]
    folder = Path("/run")
    mount("none", folder, "tmpfs")
    _with_names(folder, {"services": "".join(ports), "protocols": "".join(protocols)})
    for name, kind in SETS:
        subprocess.run(["ipset", "create", name, kind, "family", SET_FAMILY[family]], check=True)
    with Accounting() as objects, own_xtables_lock() as lock:
        for name in ACCOUNTS:
            objects.add(name)
        environment = {**os.environ, **lock}
        for line in sys.stdin:
            saved, said = {}, {}
            for variant in VARIANTS:
                saved[variant], said[variant] = _load(f"{command}-{variant}", json.loads(line), environment)
            print(json.dumps((saved, said)), flush=True)


def _load(command: str, text: str, environment: dict[str, str]) -> tuple[str | None, str]:
    table = text.partition("*")[2].partition("\n")[0].strip()
    data = text.encode("utf-8", "surrogateescape")
    done = subprocess.run(
        [f"{command}-restore"],
        input=data,
        capture_output=True,
        env=environment,
        check=False,
        timeout=60,
    )
    if done.returncode:
        return None, done.stderr.decode("utf-8", "replace").strip()
    saved = subprocess.run(
        [f"{command}-save", "-t", table], capture_output=True, env=environment, check=True, timeout=60
    )
    return saved.stdout.decode("utf-8", "surrogateescape"), ""


if __name__ == "__main__":
    _child(Family(sys.argv[1]))
