"""Rules that cannot be loaded, reduced by a backend that refuses some of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from backends.model.contract import Availability, Job
from backends.model.flow import Flow, Send
from backends.model.node import node_from_json
from backends.model.packet import Packet
from harness.shrink.loading import LoadShrinker, complaint
from harness.shrink.proposals import Shown
from translate.errors import InputError, MachineError
from translate.ir import Family, Ruleset
from translate.read import read_ruleset
from translate.write import write_save

TEXT = """\
*filter
:FORWARD ACCEPT [0:0]
:called - [0:0]
-A FORWARD -s 10.0.0.1/32 -j ACCEPT
-A FORWARD -p udp -j called
-A called -p udp -m udp --dport 53 -j DROP
-A called -p udp -m udp --dport 54 -j DROP
COMMIT
"""
FLOW = Flow(
    id="x",
    steps=(Send(packet=Packet(family=Family.IP, src=1, dst=2, proto=17, sport=1, dport=2), entry="a"),),
)
NODE = node_from_json('{"interfaces": {"eth0": ["192.0.2.2/24"]}, "routes": []}', name="node")


class Refusing:
    """Refuses rules with a destination port, with the place of the first one."""

    name = "refusing"

    def probe(self) -> Availability:
        return Availability(True)

    @contextmanager
    def open(self, job: Job) -> Iterator[None]:
        text = write_save(job.ruleset)
        if "--dport" in text:
            raise MachineError(f"line {len(text)}: Error: no port '{len(text)}' here\nwith more lines")
        yield


def read(text: str = TEXT) -> Ruleset:
    return read_ruleset(text.encode(), name="rules")


def test_one_rule_is_left() -> None:
    told: list[tuple[int, int, int]] = []
    shrinker = LoadShrinker(
        backend=Refusing(),  # type: ignore[arg-type]  # its sessions are never used
        wanted=complaint("Error: no port '' here"),
        level=0,
        tell=lambda *numbers: told.append(numbers),
    )
    job = Job(rules=read(), node=NODE)
    shown = shrinker.shrink(job, Shown(read(), FLOW))
    assert len(list(shown.ruleset.rules())) == 1
    assert "--dport" in write_save(shown.ruleset)
    assert "Error: no port" in shrinker.message
    assert told[-1][0] == 1
    with pytest.raises(InputError, match="refusing loads the rules"):
        shrinker.shrink(job, Shown(read(TEXT.replace("--dport", "--sport")), FLOW))


def test_complaints_are_compared_without_places_and_names() -> None:
    first = complaint("nftables does not take the rules: Error: line 7: unknown chain 'a7'\nmore")
    assert first == complaint("Error: line 12: unknown chain 'b'")
    assert first != complaint("Error: syntax error")
    assert complaint("translator: status 1\n") == complaint("translator: status 2")
