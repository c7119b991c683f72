from __future__ import annotations

import pytest

from translate.read.spelling.names import protocol_number, service_port


@pytest.mark.parametrize(
    ("text", "number"),
    [("tcp", 6), ("TCP", 6), ("0x11", 17), ("all", 0), ("ip", 0), ("mh", 135), ("256", None), ("x", None)],
)
def test_protocols(text: str, number: int | None) -> None:
    assert protocol_number(text) == number


@pytest.mark.parametrize(
    ("text", "port"), [("domain", 53), ("DOMAIN", None), ("0x35", 53), ("65536", None), ("", None)]
)
def test_services(text: str, port: int | None) -> None:
    assert service_port(text) == port
