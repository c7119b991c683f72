"""Errors of options: a wrong option, and a value that is not modelled."""

from __future__ import annotations

__all__ = ["NotModelledError", "OptionError"]


class OptionError(Exception):
    """A wrong or missing option of a rule.

    ``option`` is its index among the extension's options, or None for the extension as a whole; ``argument``
    is the index of the option's word: 0 is its name, 1 its first argument. ``offset`` is the position of the
    fault in this word.
    """

    def __init__(
        self,
        message: str,
        *,
        option: int | None = None,
        argument: int = 1,
        offset: int = 0,
        hint: str | None = None,
    ) -> None:
        self.message = message
        self.option = option
        self.argument = argument
        self.offset = offset
        self.hint = hint
        super().__init__(message)


class NotModelledError(OptionError):
    """A value that iptables accepts but that is not modelled; the rule is kept as spelled.

    ``message`` names the value.
    """
