"""``-m policy``: whether a packet came, or will go, through IPsec."""

from __future__ import annotations

from typing import Final

from translate.ir import Field, FieldTest, Interval, Test
from translate.read.extensions.declaration import Context, MatchExtension, Options, OptionSpec
from translate.read.spelling.errors import OptionError

__all__ = ["POLICY"]

_FIELDS: Final = {"in": Field.IPSEC_IN, "out": Field.IPSEC_OUT}
_POLICIES: Final = {"none": 0, "ipsec": 1}


def _policy(options: Options, _context: Context) -> tuple[Test, ...]:
    index, direction = options.need("--dir", "policy")
    field = _FIELDS.get(direction.arguments[0])
    if field is None:
        raise OptionError(f'unknown direction "{direction.arguments[0]}"', option=index, hint="in or out")
    used, occurrence = 1, options.find("--pol")
    if occurrence is not None:
        policy = _POLICIES.get(occurrence[1].arguments[0])
        if policy is None:
            raise OptionError(
                f'unknown policy "{occurrence[1].arguments[0]}"', option=occurrence[0], hint="none or ipsec"
            )
        used = policy
    return (FieldTest(field=field, values=(Interval.point(used),)),)


_ELEMENTS: Final = ("--reqid", "--spi", "--tunnel-src", "--tunnel-dst", "--proto", "--mode")
_NOT_THERE: Final = "a node under test has no IPsec policies to compare with"

POLICY: Final = MatchExtension(
    name="policy",
    options=(
        OptionSpec(name="--dir"),
        OptionSpec(name="--pol"),
        OptionSpec(name="--strict", arguments=0, refused=_NOT_THERE),
        *(OptionSpec(name=name, invertible=True, repeated=True, refused=_NOT_THERE) for name in _ELEMENTS),
        OptionSpec(name="--next", arguments=0, repeated=True, refused=_NOT_THERE),
    ),
    meaning=_policy,
)
"""``-m policy`` (``policy_mt``); without ``--pol``, it is true of any IPsec policy (``libxt_policy``)."""
