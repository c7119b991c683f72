"""The tests of one rule, for the kinds of tests that kube-proxy uses."""

from __future__ import annotations

from typing import Final

from nfparity.kubeproxy.chains import Protocol
from translate.ir import (
    AddressType,
    Field,
    FieldTest,
    Interval,
    Name,
    Rule,
    Test,
)
from translate.ir import Protocol as Number

__all__ = [
    "DESTINATION",
    "Key",
    "Tests",
    "is_local",
    "is_network",
    "network",
    "only",
    "point",
    "protocol",
    "tests_by_subject",
]

Key = Field | type[Test]
"""The subject of a test: its field, or its type if it has no single field."""

Tests = dict[Key, Test]
"""The tests of a rule by their subjects."""

DESTINATION: Final = frozenset({Field.DADDR, Field.L4PROTO, Field.DPORT})
"""The subjects of a rule that matches an address, a protocol and a port."""

_PROTOCOLS: Final = {Number.TCP: Protocol.TCP, Number.UDP: Protocol.UDP, Number.SCTP: Protocol.SCTP}


def tests_by_subject(rule: Rule) -> Tests | None:
    """Return the rule's tests by subject; None if a subject occurs twice or a part is hidden."""
    tests: Tests = {}
    for test in rule.tests:
        key: Key = test.field if isinstance(test, FieldTest) else type(test)
        if key in tests:
            return None
        tests[key] = test
    return None if rule.unknown else tests


def only(tests: Tests, key: Key) -> Interval | Name | None:
    """Return the only value of a test, or None if there are several, or it is masked or negated."""
    test = tests.get(key)
    if not isinstance(test, FieldTest) or test.negated or test.mask is not None or len(test.values) != 1:
        return None
    return test.values[0]


def point(tests: Tests, key: Key) -> int | None:
    """Return the only number of a test."""
    value = only(tests, key)
    return value.low if isinstance(value, Interval) and value.is_point else None


def network(tests: Tests, key: Key) -> Interval | None:
    """Return the only network of a test; kube-proxy uses no other intervals."""
    value = only(tests, key)
    return value if isinstance(value, Interval) and is_network(value) else None


def is_network(interval: Interval) -> bool:
    """Return whether an interval of addresses is a prefix."""
    return not interval.size & (interval.size - 1) and not interval.low & (interval.size - 1)


def protocol(tests: Tests) -> Protocol | None:
    """Return the transport protocol of a test, if Services support it."""
    number = point(tests, Field.L4PROTO)
    return None if number is None else _PROTOCOLS.get(Number(number)) if number in _NUMBERS else None


_NUMBERS: Final = frozenset(int(n) for n in _PROTOCOLS)


def is_local(tests: Tests, key: Field) -> bool:
    """Return whether an address must be the node's own (``addrtype LOCAL``)."""
    return point(tests, key) == AddressType.LOCAL
