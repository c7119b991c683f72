"""The end of a run whose outcome the input does not decide."""

from __future__ import annotations

__all__ = ["Undecided"]


class Undecided(Exception):  # noqa: N818  # not an error: the run ends with an outcome that says so
    """The input hides the fate of the packet; the text names the rule."""
