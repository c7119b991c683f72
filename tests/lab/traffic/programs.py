"""Traffic of common programs: curl for pages, dig for names."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from backends.testbed.command import run
from tests.lab.traffic.host import Host, Request
from tests.lab.traffic.plan import DNS_NAME
from translate.ir import Family

__all__ = ["Curl", "CurlResult", "Dig", "DigResult", "Fetch"]


@dataclass(frozen=True, slots=True)
class CurlResult:
    """The result of one curl: the pods that answered, the sources that they saw, and its errors."""

    status: int
    pods: Counter[str]
    sources: Counter[str]
    error: str


@dataclass(frozen=True, slots=True)
class Curl(Request):
    """Runs curl for ``count`` pages, each by a separate connection. MachineError without curl."""

    url: str
    count: int

    def run(self, host: Host) -> CurlResult:
        """Run curl with a list of URLs."""
        pages = [f'url = "{self.url}/page/{n}"\noutput = "-"\n' for n in range(self.count)]
        config = 'no-keepalive\nfail\nsilent\nshow-error\nmax-time = 20\nheader = "Connection: close"\n'
        done = run(("curl", "--disable", "--noproxy", "*", "--config", "-"), config + "".join(pages))
        pods: Counter[str] = Counter()
        sources: Counter[str] = Counter()
        paths = set()
        for line in done.stdout.splitlines():
            pod, address, _, path = line.split(" ")
            pods[pod] += 1
            sources[address] += 1
            paths.add(path)
        wrong = "" if len(paths) == self.count else f"{len(paths)} pages of {self.count}; "
        return CurlResult(done.returncode, pods, sources, wrong + done.stderr[:2000])


@dataclass(frozen=True, slots=True)
class Fetch(Request):
    """Runs curl for one page of a given size; returns the number of received bytes and the exit status."""

    url: str

    def run(self, host: Host) -> tuple[int, int]:
        """Run curl."""
        form = "%{size_download}"
        command = ("curl", "--disable", "--noproxy", "*", "--fail", "--silent", "--max-time", "60")
        done = run((*command, "--output", "/dev/null", "--write-out", form, self.url))
        return int(done.stdout or 0), done.returncode


@dataclass(frozen=True, slots=True)
class DigResult:
    """The number of answers of each pod, and the errors that dig printed."""

    status: int
    pods: Counter[str]
    error: str


@dataclass(frozen=True, slots=True)
class Dig(Request):
    """Runs dig to look up :data:`DNS_NAME` ``count`` times. MachineError without dig."""

    family: Family
    server: str
    count: int
    port: int = 53
    tcp: bool = False

    def run(self, host: Host) -> DigResult:
        """Run dig: one query after the other, each from a new socket and without retries."""
        query = (f"@{self.server}", "-p", str(self.port), DNS_NAME, "TXT")
        once = ("+short", "+tries=1", "+time=10", "+tcp" if self.tcp else "+notcp")
        done = run(("dig", "-r", *(word for _ in range(self.count) for word in (*query, *once))))
        lines = done.stdout.splitlines()
        pods = Counter(x.strip('"') for x in lines if x.startswith('"'))
        return DigResult(
            done.returncode, pods, "\n".join(x for x in lines if not x.startswith('"')) + done.stderr
        )
