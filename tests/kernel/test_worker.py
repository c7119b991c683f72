"""The child process: its errors arrive as what they are, and its namespace is its own."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import pytest

from backends.model.node import Address, Interface, Node, Route
from backends.replay.worker import Worker
from backends.testbed.tapnode import TapNode
from translate.errors import Diagnostic, MachineError, ParseError, Refusal, UnsupportedError
from translate.ir import Family, Interval, Origin

ORIGIN = Origin("rules", 3, 7, "-A INPUT")
CALL_IT = partial(eval, "lambda message: message()")
"""A server that calls what it is sent; both must be importable in the child, as these are."""


@pytest.fixture(scope="module")
def worker():
    with Worker(CALL_IT) as worker:
        yield worker


def ask(worker: Worker, code: str) -> object:
    return worker.ask(partial(eval, code))


def test_it_has_a_network_namespace_of_its_own(worker):
    theirs = ask(worker, "__import__('os').readlink('/proc/self/ns/net')")
    assert theirs != os.readlink("/proc/self/ns/net")
    assert ask(worker, "sorted(__import__('os').listdir('/sys/class/net'))") != []


@pytest.mark.parametrize(
    "error",
    [
        ParseError((Diagnostic(ORIGIN, "bad mask", hint="write 0x1/0x1"),)),
        UnsupportedError((Refusal(ORIGIN, "nftables", "recent", "no recent lists"),)),
        MachineError("no such thing"),
    ],
)
def test_errors_arrive_as_what_they_are(worker, error):
    names = "from translate.errors import *; from translate.ir import Origin"
    given = getattr(error, "diagnostics", None) or getattr(error, "refusals", None) or str(error)
    with pytest.raises(type(error)) as caught:
        worker.ask(partial(exec, f"{names}\nraise {type(error).__name__}({given!r})"))
    assert str(caught.value) == str(error)
    assert {k: v for k, v in vars(caught.value).items() if k != "__notes__"} == vars(error)


def test_errors_of_the_system_are_the_machines(worker):
    with pytest.raises(MachineError, match="No such file"):
        ask(worker, "open('/nowhere')")


def test_bugs_keep_their_traceback(worker):
    with pytest.raises(RuntimeError, match=r"(?s)Traceback.*ZeroDivisionError"):
        ask(worker, "1 // 0")


def test_it_serves_on_after_an_error(worker):
    with pytest.raises(MachineError):
        ask(worker, "open('/nowhere')")
    assert ask(worker, "6 * 7") == 42


def test_an_answer_that_cannot_travel_is_a_bug(worker):
    with pytest.raises(RuntimeError, match="pickle"):
        ask(worker, "lambda: 1")


def test_large_messages_in_both_directions(worker):
    megabytes = b"x" * 10_000_000
    assert worker.ask(partial(bytes.replace, megabytes, b"x", b"y")) == b"y" * len(megabytes)


def test_what_it_prints_is_no_answer(worker, capfd):
    assert ask(worker, "print('hello', flush=True)") is None
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")


def node(**fields: Any) -> Node:
    interface = Interface("eth0", (Address(Family.IP, 0xC0000201, 24),))
    return Node(**{"interfaces": (interface,), **fields})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sysctls": {"kernel.hostname": "x"}}, "only net"),
        ({"sysctls": {"net.ipv4.no_such_thing": "1"}}, "no sysctl net.ipv4.no_such_thing"),
        ({"sysctls": {"net.ipv4.ip_forward": "maybe"}}, "cannot set sysctl net.ipv4.ip_forward to 'maybe'"),
        (
            {"routes": (Route(family=Family.IP, dst=Interval(0, 0xFFFFFFFF), dev="eth0", via=0xE0000001),)},
            "cannot add the route 0.0.0.0/0 via 224.0.0.1 dev eth0",
        ),
        ({"interfaces": (Interface("a"), Interface("a"))}, "cannot make the TAP device a"),
    ],
)
def test_a_node_that_cannot_be(fields, message):
    with Worker(CALL_IT) as fresh, pytest.raises(MachineError, match=message):
        fresh.ask(partial(TapNode, node(**fields)))


def test_sysctls_of_one_interface():
    # As sysctl(8) has it, "/" stands for a dot in a name.
    interfaces = (Interface("eth0.7"), Interface("b0"))
    sysctls = {"net.ipv4.conf.eth0/7.rp_filter": "2", "net/ipv4/conf/b0/rp_filter": "1"}
    with Worker(CALL_IT) as fresh:
        keep = f"import builtins; builtins.kept = TapNode({Node(interfaces, sysctls=sysctls)!r})"
        names = "from backends.testbed.tapnode import TapNode; from backends.model.node import *"
        fresh.ask(partial(exec, f"{names}\n{keep}"))
        read = "open('/proc/sys/net/ipv4/conf/{}/rp_filter').read()"
        found = [ask(fresh, read.format(device)) for device in ("eth0.7", "b0", "all")]
    assert found == ["2\n", "1\n", "0\n"]
