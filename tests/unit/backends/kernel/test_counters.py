from __future__ import annotations

import re

from backends.tc_ebpf.counters import COUNTERS
from translate.bpf.runtime import runtime_text


def test_names_stand_in_the_order_of_the_program() -> None:
    body = runtime_text("counters").partition("enum counter {")[2].partition("}")[0]
    names = [name.lower().replace("_", "-") for name in re.findall(r"COUNT_(\w+)", body)]
    assert names == list(COUNTERS)
    assert f"#define COUNTERS {len(names)}\n" in runtime_text("counters")
