from __future__ import annotations

from translate.ir.chunks import CHUNKS
from translate.read.extensions.chunks import CHUNK_TYPES


def test_each_type_of_iptables_has_a_name() -> None:
    names = {CHUNKS[kind].replace("-", "_").upper() for kind in CHUNK_TYPES.values()}
    assert names ^ set(CHUNK_TYPES) == {"ECNE", "CWR", "ECN_ECNE", "ECN_CWR"}
    assert len(CHUNKS) == len(CHUNK_TYPES)
