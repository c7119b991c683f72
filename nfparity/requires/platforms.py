"""The kernel modules that a machine has: of a named platform, or of a list from the machine itself."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Final

from translate.dataclass import dataclass
from translate.errors import InputError

__all__ = [
    "Modules",
    "Presence",
    "listed_modules",
    "platform_modules",
    "platform_names",
    "snapshot_modules",
]

_PLATFORMS: Final = Path(__file__).with_name("platforms.toml")
_MODULE: Final = re.compile(
    r"(?:^|[\s/])([A-Za-z0-9_-]+)(?:\.ko(?:\.(?:xz|zst|gz))?)?(?=[\s:]|$)", re.MULTILINE
)


class Presence(StrEnum):
    """The availability of a module on a machine."""

    PRESENT = "present"
    OPTIONAL = "optional"
    """Present only if an optional package of the platform is installed."""
    ABSENT = "absent"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Modules:
    """The modules of a machine or platform.

    ``present`` are all its modules, or None if it has all but ``absent`` and ``optional``; these two are
    patterns such as ``xt_*``. ``package`` contains the optional modules. ``sources`` are the sources of these
    facts. ``accepted`` and ``refused`` are modules that its kernel was tried with; they count more than a
    list. ``listed`` is False if nothing else is known.
    """

    name: str
    present: frozenset[str] | None = None
    absent: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    package: str = ""
    sources: tuple[str, ...] = ()
    accepted: frozenset[str] = frozenset()
    refused: frozenset[str] = frozenset()
    listed: bool = True

    def presence(self, module: str) -> Presence:
        """Return whether the machine has a module."""
        if module in self.accepted:
            return Presence.PRESENT
        if module in self.refused:
            return Presence.ABSENT
        if not self.listed:
            return Presence.UNKNOWN
        if self.present is not None:
            return Presence.PRESENT if module in self.present else Presence.ABSENT
        if any(fnmatchcase(module, pattern) for pattern in self.absent):
            return Presence.ABSENT
        if any(fnmatchcase(module, pattern) for pattern in self.optional):
            return Presence.OPTIONAL
        return Presence.PRESENT


def platform_names() -> tuple[str, ...]:
    """Return the names of the platforms with known modules, in the order of the file."""
    return tuple(_platforms())


def platform_modules(name: str) -> Modules:
    """Return the modules of a platform. Raises InputError if they are not known."""
    known = _platforms()
    if name in known:
        return known[name]
    others = f"Known are {', '.join(known)}. For any other, give the list of its modules with --modules"
    if (row := _rows().get(name)) is not None:
        raise InputError(f"the modules of {row['name']} are not known: {row['unknown']}. {others}")
    raise InputError(f"no platform {name!r} is known. {others}")


def snapshot_modules(meta: Mapping[str, Any], *, name: str) -> Modules | None:
    """Return the modules of a snapshot's node by its ``meta.json``, or None if nothing is known of them."""
    names = _texts(meta.get("modules"))
    tried = meta.get("expressions")
    if not isinstance(tried, dict):
        tried = {}
    refused = tried.get("refused")
    machine = Modules(
        name=name,
        present=names,
        accepted=_texts(tried.get("accepted")) or frozenset(),
        refused=frozenset(refused) if isinstance(refused, dict) else frozenset(),
        listed=names is not None,
    )
    return machine if machine.listed or machine.accepted or machine.refused else None


def _texts(data: object) -> frozenset[str] | None:
    """Return a list of texts, or None if it is none."""
    if not isinstance(data, list) or not all(isinstance(item, str) for item in data):
        return None
    return frozenset(data)


def listed_modules(text: str, *, name: str) -> Modules:
    """Return the modules that a text lists: ``modules.order``, ``modules.builtin``, ``lsmod``, or names.

    Raises InputError if it lists no module of netfilter.
    """
    names = frozenset(word.replace("-", "_") for word in _MODULE.findall(text))
    if not any(known.startswith(("nf_", "nft_", "xt_", "ip_tables")) for known in names):
        raise InputError(f"{name}: this lists no module of netfilter")
    return Modules(name=name, present=names)


@cache
def _rows() -> dict[str, dict[str, Any]]:
    return tomllib.loads(_PLATFORMS.read_text(encoding="utf-8"))


@cache
def _platforms() -> dict[str, Modules]:
    return {
        key: Modules(
            name=row["name"],
            absent=tuple(row["absent"]),
            optional=tuple(row.get("optional", ())),
            package=row.get("package", ""),
            sources=tuple(row["sources"]),
        )
        for key, row in _rows().items()
        if "unknown" not in row
    }
