"""Conversations that bring the counts of a connection to the limits of ``-m connbytes``."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice, repeat
from typing import Final

from backends.model.flow import Again, Reply, Send, Step
from harness.corpus.formats.headers import with_header
from harness.corpus.generate.candidates.constraints import Constraints
from harness.corpus.generate.candidates.values import ends
from translate.ir import Field

__all__ = ["conversations"]

_MOST: Final = 10
"""The maximum number of packets of a conversation."""
_SIDES: Final[dict[Field, tuple[Step, ...]]] = {
    Field.CT_PACKETS: (Reply(), Again()),
    Field.CT_ORIGINAL_PACKETS: (Again(),),
    Field.CT_REPLY_PACKETS: (Reply(),),
}
_OF_LENGTHS: Final = (
    *(Field.CT_BYTES, Field.CT_ORIGINAL_BYTES, Field.CT_REPLY_BYTES),
    *(Field.CT_AVERAGE, Field.CT_ORIGINAL_AVERAGE, Field.CT_REPLY_AVERAGE),
)


def conversations(first: Send, constraints: Constraints) -> Iterator[tuple[Step, ...]]:
    """Yield conversations that begin with ``first``, or with a packet of another length, likeliest first.

    With the last packets, the counts of the connection should be at an end of the allowed range; the
    simulator checks this. Yields nothing if the constraints do not restrict counts.
    """
    for field, steps in _SIDES.items():
        if constraints.has(field):
            for count in ends(constraints.values(field)):
                if count <= _MOST:
                    yield (first, *islice(chain.from_iterable(repeat(steps)), count))
                    yield (first, *(Reply(), Again()) * count)
    for field in _OF_LENGTHS:
        if constraints.has(field):
            for length in ends(constraints.values(field)):
                packet = with_header(first.packet, Field.LENGTH, length, first.entry, forwarded=False)
                if packet is not None:
                    yield (Send(packet=packet, entry=first.entry), Reply(), Again())
            yield (first, *(Reply(), Again()) * 4)
