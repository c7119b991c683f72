from __future__ import annotations

from backends.model.flow import Again, IcmpError, Reply

MARK = "mangle: -A PREROUTING -i west -j CONNMARK --set-xmark 0x80/0x80"


def marks(lab, rules, *steps) -> list[int | None]:
    return [outcome.mark for outcome in lab.run(rules, *steps)]


def test_the_mark_stays_with_the_connection(lab) -> None:
    rules = f"{MARK}\nmangle: -A PREROUTING -i east -j CONNMARK --restore-mark --mask 0x80"
    assert marks(lab, rules, lab.udp("10.1.0.5", "10.2.0.5"), Reply(), Again()) == [0, 0x80, 0]
    error = IcmpError(type=3, code=1)
    assert marks(lab, rules, lab.udp("10.1.0.5", "10.2.0.5"), error) == [0, 0x80]


def test_masks_are_those_of_the_mark_that_they_name(lab) -> None:
    rules = """
        mangle: -A PREROUTING -i west -j MARK --set-mark 0x1ff
        mangle: -A PREROUTING -i west -j CONNMARK --set-mark 0xf00
        mangle: -A PREROUTING -i west -j CONNMARK --save-mark --nfmask 0xf0 --ctmask 0xf
        mangle: -A PREROUTING -i east -j MARK --set-mark 0xff0000
        mangle: -A PREROUTING -i east -j CONNMARK --restore-mark --nfmask 0xf0000 --ctmask 0xff0
    """
    assert marks(lab, rules, lab.udp("10.1.0.5", "10.2.0.5"), Reply()) == [0x1FF, 0xF00000 ^ 0xFF0]


def test_a_packet_without_an_entry_keeps_its_mark(lab) -> None:
    rules = """
        mangle: -A PREROUTING -j MARK --set-mark 0xff
        mangle: -A PREROUTING -j CONNMARK --restore-mark
        mangle: -A PREROUTING -m connmark ! --mark 5 -j MARK --set-mark 1
    """
    assert marks(lab, rules, lab.udp("10.1.0.5", "10.2.0.5")) == [1]
    assert marks(lab, f"raw: -A PREROUTING -j NOTRACK\n{rules}", lab.udp("10.1.0.5", "10.2.0.5")) == [0xFF]
