"""Running tools."""

from __future__ import annotations

from backends.testbed.command import run


def test_what_a_tool_reads_and_prints_is_not_changed() -> None:
    """Neither ends of lines nor bytes that are not UTF-8: both can stand in a rule's comment."""
    text = "a\rb\r\nc\fd\u2028e\udcff\n"
    done = run(("cat",), text)
    assert (done.returncode, done.stdout, done.stderr) == (0, text, "")
    assert run(("sh", "-c", "printf 'x\\ry' >&2; exit 3")).stderr == "x\ry"
