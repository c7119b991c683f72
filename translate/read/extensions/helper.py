"""``-m helper``: the conntrack helper that expected the packet's connection, such as data of FTP."""

from __future__ import annotations

from typing import Final

from translate.ir import AnyOf, Field, FieldTest, Name, Test
from translate.read.extensions.declaration import Context, MatchExtension, Options, OptionSpec

__all__ = ["HELPER"]

_LONGEST: Final = 29
"""The bytes of a name that ``struct xt_helper_info`` holds; libxtables ignores the rest of a longer name."""


def _helper(options: Options, _context: Context) -> tuple[Test, ...]:
    _, option = options.need("--helper", "helper")
    name = (
        option.arguments[0].encode("utf-8", "surrogateescape")[:_LONGEST].decode("utf-8", "surrogateescape")
    )
    # Without a name, any helper. Otherwise strncmp compares as many characters as the helper's own name has.
    starts = [name[:length] for length in range(1, len(name) + 1)]
    values = tuple(map(Name, starts)) or (Name("", wildcard=True),)
    test = FieldTest(field=Field.CT_HELPER, values=values)
    # Negated, it holds for connections that no helper expected, too.
    return (AnyOf(tests=(test,), negated=True),) if option.negated else (test,)


HELPER: Final = MatchExtension(
    name="helper", options=(OptionSpec(name="--helper", invertible=True),), meaning=_helper
)
"""``-m helper`` (``helper_mt``)."""
