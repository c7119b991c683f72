"""ipsets as text for ``ipset restore``, spelled as by ``ipset save``."""

from __future__ import annotations

from collections.abc import Iterable

from translate.ir import IpSet, SetOption
from translate.read.ipset import element_text

__all__ = ["write_ipsets"]


def write_ipsets(sets: Iterable[IpSet]) -> str:
    """Return the text that creates and fills the sets, byte for byte as ``ipset save`` prints it.

    Ranges that were given to ``ipset add`` are written as single elements.
    """
    lines: list[str] = []
    for ipset in sets:
        lines.append(" ".join(["create", ipset.name, ipset.type.value, *map(_option, ipset.options)]))
        for element in ipset.elements:
            words = ["add", ipset.name, element_text(ipset.type, ipset.family, element.key)]
            before = [o for o in element.options if o.name == "timeout"]
            behind = [o for o in element.options if o.name != "timeout"]
            words += [*map(_option, before), *(["nomatch"] if element.nomatch else []), *map(_option, behind)]
            lines.append(" ".join(words))
    return "".join(f"{line}\n" for line in lines)


def _option(option: SetOption) -> str:
    if option.value is None:
        return option.name
    value = f'"{option.value}"' if option.name == "comment" else option.value
    return f"{option.name} {value}"
