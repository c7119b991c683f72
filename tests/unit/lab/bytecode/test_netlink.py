from __future__ import annotations

from tests.lab.bytecode.instructions import Compare, Decide, LoadCt, Verdict
from tests.lab.bytecode.listing import listing_of
from tests.lab.bytecode.netlink import attributes, listed, read_messages

RULE = """\
----------------\t------------------
|  0000000020  |\t| message length |
| 00016 | R--- |\t|  type | flags  |
| 00 00 00 0a  |\t|  extra header  |
----------------\t------------------
----------------\t------------------
|  0000000120  |\t| message length |
| 02566 | R--- |\t|  type | flags  |
|  0000000004  |\t| sequence number|
|  0000000000  |\t|     port ID    |
----------------\t------------------
| 02 00 00 00  |\t|  extra header  |
|\x1b[1;31m00006\x1b[0m|\x1b[1;32m--\x1b[0m|\x1b[1;34m00001\x1b[0m|\t|len |flags| type|
| 74 00 00 00  |\t|      data      |
|00006|--|00002|\t|len |flags| type|
| 63 00 00 00  |\t|      data      |
|00144|N-|00004|\t|len |flags| type|
|00040|N-|00001|\t|len |flags| type|
|00007|--|00001|\t|len |flags| type|
| 63 74 00 00  |\t|      data      |
|00028|N-|00002|\t|len |flags| type|
|00008|--|00002|\t|len |flags| type|
| 00 00 00 13  |\t|      data      |
|00008|--|00001|\t|len |flags| type|
| 00 00 00 01  |\t|      data      |
|00005|--|00003|\t|len |flags| type|
| 00 00 00 00  |\t|      data      |
|00044|N-|00001|\t|len |flags| type|
|00008|--|00001|\t|len |flags| type|
| 63 6d 70 00  |\t|      data      |
|00032|N-|00002|\t|len |flags| type|
|00008|--|00001|\t|len |flags| type|
| 00 00 00 01  |\t|      data      |
|00008|--|00002|\t|len |flags| type|
| 00 00 00 01  |\t|      data      |
|00012|N-|00003|\t|len |flags| type|
|00006|--|00001|\t|len |flags| type|
| ac 12 00 00  |\t|      data      |
|00056|N-|00001|\t|len |flags| type|
|00014|--|00001|\t|len |flags| type|
| 69 6d 6d 65  |\t|      data      |
| 64 69 61 74  |\t|      data      |
| 65 00 00 00  |\t|      data      |
|00036|N-|00002|\t|len |flags| type|
|00008|--|00001|\t|len |flags| type|
| 00 00 00 00  |\t|      data      |
|00024|N-|00002|\t|len |flags| type|
|00020|N-|00002|\t|len |flags| type|
|00008|--|00001|\t|len |flags| type|
| ff ff ff fd  |\t|      data      |
|00006|--|00002|\t|len |flags| type|
| 64 00 00 00  |\t|      data      |
----------------\t------------------
"""


def test_a_rule_as_nft_sends_it() -> None:
    (message,) = read_messages(RULE)
    listing = listing_of([message])
    (rule,) = listing.rules["c"]
    assert rule == (
        LoadCt("saddr", "original", 1),
        Compare("neq", 1, bytes([172, 18])),  # ct original ip saddr != 172.18.0.0/16
        Decide(Verdict("jump", "d")),
    )


def test_a_nest_is_filled_up_to_words() -> None:
    data = bytes.fromhex("05000100410000000600028042430000")
    assert attributes(data) == {1: b"A", 2: b"BC"}
    assert listed(data) == [b"A", b"BC"]


def test_messages_of_others_are_left_out() -> None:
    assert not list(read_messages(RULE.replace("02566", "00566")))
