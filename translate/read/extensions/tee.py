"""``-j TEE``: copies of packets for another machine."""

from __future__ import annotations

from typing import Final

from translate.ir import Duplicate
from translate.read.extensions.declaration import Context, Options, OptionSpec, TargetExtension
from translate.read.spelling.address import parse_resolved
from translate.read.spelling.errors import OptionError

__all__ = ["TEE"]

_LONGEST_DEVICE: Final = 15  # IFNAMSIZ, less its NUL


def _tee(options: Options, context: Context) -> Duplicate:
    index, option = options.need("--gateway", "TEE")
    gateway = parse_resolved(context.family, option.arguments[0], option=index)
    if not gateway:
        raise OptionError("the gateway is not an address of a machine", option=index)
    device = options.find("--oif")
    if device is None:
        return Duplicate(gateway)
    index, option = device
    if not 0 < len(option.arguments[0].encode("utf-8", "surrogateescape")) <= _LONGEST_DEVICE:
        raise OptionError(f"a device's name has 1 to {_LONGEST_DEVICE} bytes", option=index)
    return Duplicate(gateway, option.arguments[0])


TEE: Final = TargetExtension(
    name="TEE",
    options=(OptionSpec(name="--gateway"), OptionSpec(name="--oif")),
    meaning=_tee,
)
"""``-j TEE`` (``xt_TEE``)."""
