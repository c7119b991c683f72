"""The contents of a page."""

from __future__ import annotations

from backends.model.outcome import Outcome, Verdict
from backends.model.packet import PortClass
from nfparity.report.pages.content import Field, Finding, Level, Page, Section, changed_fields
from translate.ir import Family

HIGH, LOW, NONE = (Level(name, name, name) for name in ("high", "low", "none"))


def test_fields_of_two_outcomes() -> None:
    before = Outcome(verdict=Verdict.FORWARD, out="eth0", src=1, dst=2, sport=PortClass(1024, 65535), ttl=63)
    fields = changed_fields(before, Outcome(verdict=Verdict.DROP), Family.IP)
    assert fields[:4] == (
        Field("verdict", "forward", "drop"),
        Field("out", "eth0", ""),
        Field("src", "0.0.0.1", ""),
        Field("dst", "0.0.0.2", ""),
    )
    assert Field("sport", "a port of 1024-65535", "") in fields
    assert all(field.differs for field in fields)
    assert not any(field.differs for field in changed_fields(before, before, Family.IP))


def test_findings_are_counted_by_severity() -> None:
    findings = (
        Finding(level=LOW, subject="b"),
        Finding(level=HIGH, subject="a"),
        Finding(level=LOW, subject="a"),
    )
    section = Section(id="s", name="s", title="s", findings=findings)
    page = Page(
        title="p", verdict="v", good=False, levels=(HIGH, LOW, NONE), sections=(section,), facts=(), kind="k"
    )
    assert page.counts == ((HIGH, 1), (LOW, 2))
    assert page.findings == 3
    assert page.services == ("a", "b")
