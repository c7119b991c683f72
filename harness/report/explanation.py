"""An explanation as text: the verdict, the rules that decided and the reasons; then the whole path."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Callable, Iterator
from enum import Enum
from fractions import Fraction
from typing import Final, TextIO

from backends.model.outcome import Verdict
from backends.simulator import Ended, PolicyApplied, RuleVisited, TracedStep
from harness.explain.explain import ExplainedBranch, Explanation, merge_replies
from harness.report.path import decides, drop_text, ending_text, match_text, path_lines
from harness.report.terminal import plain, styled
from translate.dataclass import dataclass
from translate.ir import Family, Policy

__all__ = ["chance_text", "print_explanation"]

_NARROWEST: Final = 40
_DEEPEST: Final = 24
"""The maximum indentation of a continued line."""


class _Style(Enum):
    """The colour of a line on a terminal."""

    PLAIN = ""
    ARRIVES = "bold green"
    LOST = "bold red"
    UNKNOWN = "bold yellow"
    RULE = "bold"
    MINOR = "dim"


_VERDICTS: Final = {
    Verdict.FORWARD: _Style.ARRIVES,
    Verdict.LOCAL: _Style.ARRIVES,
    Verdict.DROP: _Style.LOST,
    Verdict.REJECT: _Style.LOST,
}


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of the report."""

    text: str = ""
    style: _Style = _Style.PLAIN


def chance_text(probability: Fraction) -> str:
    """Return the probability of a branch with three digits, "probability 0.333"; empty if it is certain."""
    return "" if probability == 1 else f"probability {float(probability):.3g}"


def print_explanation(
    explanation: Explanation, stream: TextIO, *, with_reply: bool, every_rule: bool, whole_path: bool = True
) -> None:
    """Print every branch with its probability, verdict, deciding rules and reasons; and its path if wanted.

    On a terminal, lines are as wide as the terminal, and have colours.
    """
    write = _writer(stream)
    first = explanation.flow.first
    where = f"enters at {first.entry}" if first.entry is not None else "made on the node"
    write(_Line(f"packet {first.packet}, {where}; line numbers of {explanation.job.ruleset.source}"))
    branches = explanation.branches if with_reply else merge_replies(explanation.branches)
    total = len(branches)
    for number, branch in enumerate(branches, start=1):
        title = ", ".join(filter(None, (f"branch {number} of {total}", chance_text(branch.probability))))
        write(_Line(f"\n{title}" if total > 1 else ""))
        for assumption in branch.assuming:
            write(_Line(f"  if {assumption}"))
        for line in _branch(explanation, branch, with_reply=with_reply):
            write(line)
        if whole_path:
            for line in _path(explanation, branch, with_reply=with_reply, every_rule=every_rule):
                write(line)
    if not whole_path:
        write(_Line("\n-v shows the path, rule by rule", _Style.MINOR))


def _branch(explanation: Explanation, branch: ExplainedBranch, *, with_reply: bool) -> Iterator[_Line]:
    family = explanation.job.ruleset.family
    yield from _verdict(branch.steps[0], family, "verdict")
    if with_reply:
        reply = branch.steps[1]
        if reply.outcome is not None and reply.outcome.verdict is Verdict.UNKNOWN:
            yield _Line("reply: unknown, because the outcome of the packet is unknown", _Style.UNKNOWN)
        elif reply.emission is None:
            yield _Line("reply: none, because the packet reached no receiver", _Style.LOST)
        else:
            yield from _verdict(reply, family, "reply")
    if branch.consequences:
        yield _Line("why")
        for consequence in dict.fromkeys(branch.consequences):
            yield _Line(f"  - {consequence}")


def _verdict(step: TracedStep, family: Family, title: str) -> Iterator[_Line]:
    ends = [event for event in step.events if isinstance(event, Ended)]
    if ends:
        style = _VERDICTS.get(ends[-1].outcome.verdict, _Style.UNKNOWN)
        yield _Line(f"{title}: {ending_text(ends[-1], family)}", style)
    for event in step.events:
        if isinstance(event, PolicyApplied) and event.policy is Policy.DROP:
            yield _Line(f"  policy DROP of {event.table} {event.hook}", _Style.RULE)
        if not isinstance(event, RuleVisited):
            continue
        if not event.dropped and not (event.matched and decides(event.rule)):
            continue
        origin = event.rule.origin
        line = f"{origin.line}: " if origin.line else ""
        yield _Line(f"  {line}{origin.text.strip() or f'{event.chain} rule {event.index}'}", _Style.RULE)
        effect = drop_text(event, family) if event.dropped else match_text(event.rule, family)
        yield _Line(f"  {' ' * len(line)}  → {effect}")


def _path(
    explanation: Explanation, branch: ExplainedBranch, *, with_reply: bool, every_rule: bool
) -> Iterator[_Line]:
    family = explanation.job.ruleset.family
    yield _Line("path")
    lines = path_lines(branch.steps[0], family, every_rule=every_rule)
    emission = branch.steps[1].emission
    if with_reply and emission is not None:
        where = f"enters at {emission.entry}" if emission.entry is not None else "made on the node"
        lines.append(f"reply {emission.packet}, {where}")
        lines += path_lines(branch.steps[1], family, every_rule=every_rule)
    for text in lines:
        minor = text.lstrip().startswith(("→ no:", "lines ")) or text.endswith(" rules do not match")
        yield _Line(f"  {text}", _Style.MINOR if minor else _Style.PLAIN)


def _writer(stream: TextIO) -> Callable[[_Line], None]:
    """Return a function that writes a line: unchanged into a file, fitted and coloured to a terminal."""
    if not stream.isatty():
        return lambda line: print(line.text, file=stream)
    width = max(shutil.get_terminal_size().columns, _NARROWEST)
    show = styled(stream)

    def write(line: _Line) -> None:
        for paragraph in line.text.split("\n"):
            for text in _fitted(plain(paragraph), width):
                show(text, line.style.value)

    return write


def _fitted(text: str, width: int) -> list[str]:
    """Return a text as lines of at most this width, if its words allow it; continued lines are indented."""
    indent = min(len(text) - len(text.lstrip(" ")) + 4, _DEEPEST, width // 2)
    lines = textwrap.wrap(
        text, width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )
    return lines or [""]
