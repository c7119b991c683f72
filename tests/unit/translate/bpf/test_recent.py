from __future__ import annotations

from tests.unit.translate.helpers.rules import program
from translate.bpf import emit
from translate.bpf.layout.tables import RECENT_SIZE

SOURCE = "--mask 255.255.255.255 --rsource"


def lines(*rules: str, level: int = 0) -> list[str]:
    return [line.strip() for line in emit(program("filter", *rules, level=level)).chains.splitlines()]


def test_a_list_is_a_number_and_every_mode_a_call() -> None:
    found = lines(
        f"-A INPUT -m recent --name a --rcheck --seconds 5 {SOURCE} -j DROP",
        f"-A INPUT -m recent --name b ! --update --seconds 7 {SOURCE} -j DROP",
        "-A INPUT -m recent --name c --remove --mask 255.255.0.0 --rdest -j DROP",
        f"-A INPUT -p tcp -m recent --name b --set {SOURCE} -m tcp --dport 22 -j DROP",
    )
    calls = [line for line in found if "recent(" in line]
    assert calls == [
        "if (recent(0, p->saddr, 5, RECENT_RCHECK, 0)) {",
        "if (recent(1, p->saddr, 7, RECENT_UPDATE, 1)) {",
        "if (recent(2, p->daddr & 0xffff0000, 0, RECENT_REMOVE, 0)) {",
        "if (p->proto == 0x6 && recent(1, p->saddr, 0, RECENT_SET, 0) && p->has_ports && p->dport == 0x16) {",
    ]


def test_a_rule_without_a_target_still_writes() -> None:
    rules = (
        f"-A INPUT -p udp -m recent --name a --set {SOURCE}",
        f"-A INPUT -p udp -m recent --name a --rcheck {SOURCE}",
    )
    for level in (0, 1):
        found = lines(*rules, level=level)
        assert "(void)(p->proto == 0x11 && recent(0, p->saddr, 0, RECENT_SET, 0));" in found


def test_only_rules_with_lists_bring_the_map() -> None:
    without, having = (emit(program("filter", f"-A INPUT {t}")) for t in ("-j DROP", "-m recent --set"))
    assert ("recents" in without.source, without.lists) == (False, False)
    assert f"struct recent_key, u64, recents, {RECENT_SIZE})" in having.source
    assert having.lists


def test_the_capacity_is_a_note_with_the_rules_line_and_the_size() -> None:
    rules = ("-A INPUT -m recent --name a --rcheck -j DROP", "-A INPUT -m recent --name a --set")
    (note,) = emit(program("filter", *rules)).notes
    assert note.render().startswith("rules:6: tc-ebpf: the list a of -m recent holds 100 addresses")
    assert str(RECENT_SIZE) in note.text
