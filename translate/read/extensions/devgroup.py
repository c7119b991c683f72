"""``-m devgroup``: the groups of the interfaces by which a packet comes in and leaves."""

from __future__ import annotations

import re
from typing import Final

from translate.ir import Field, FieldTest, Interval, Option, Test
from translate.read.extensions.declaration import MARK_BITS, Context, MatchExtension, Options, OptionSpec
from translate.read.spelling.errors import NotModelledError, OptionError
from translate.read.spelling.numbers import unsigned

__all__ = ["DEVGROUP"]

_FIELDS: Final = {"--src-group": Field.IIF_GROUP, "--dst-group": Field.OIF_GROUP}
_DEFAULT: Final = "default"
"""The name of group 0 in ``/etc/iproute2/group``, which ``iptables-save`` prints."""


def _devgroup(options: Options, _context: Context) -> tuple[Test, ...]:
    if not options:
        raise OptionError("devgroup needs --src-group or --dst-group")
    return tuple(_test(index, option) for index, option in enumerate(options))


def _test(index: int, option: Option) -> FieldTest:
    """Return the test of a group; only bits of the number within the mask count (``devgroup_mt``)."""
    value, mask = _value_mask(option.arguments[0], index)
    return FieldTest(
        field=_FIELDS[option.name],
        values=(Interval.point(value & mask),),
        mask=None if mask == MARK_BITS else mask,
        negated=option.negated,
    )


def _value_mask(text: str, index: int) -> tuple[int, int]:
    """Return the number and mask of ``number[/mask]`` or of a name (``xtables_parse_val_mask``)."""
    if text == _DEFAULT:
        return 0, MARK_BITS
    value_text, slash, mask_text = text.partition("/")
    value = unsigned(value_text, MARK_BITS)
    mask = unsigned(mask_text, MARK_BITS) if slash else MARK_BITS
    if value is None and not slash and _NAME.fullmatch(text):
        raise NotModelledError(f'the group "{text}", which only the node knows by this name', option=index)
    if value is None or mask is None:
        raise OptionError(f'"{text}" is not a group', option=index, hint="a number, or number/mask")
    return value, mask


_NAME: Final = re.compile(r"[A-Za-z][^\s/]*")

DEVGROUP: Final = MatchExtension(
    name="devgroup",
    options=tuple(OptionSpec(name=name, invertible=True) for name in _FIELDS),
    meaning=_devgroup,
    fields=(Field.IIF, Field.OIF),
)
"""``-m devgroup`` (``devgroup_mt``)."""
