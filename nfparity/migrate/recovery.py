"""Changes that can be undone, found in the kernel and in the files left on disk.

The kernel has priority: the mark of the loaded table contains the digest of the replaced rules, which
identifies the right file. Next comes the record, if it is intact and belongs to this namespace. There are two
copies of each family's rules: the saved rules, with counters, and the rules in the plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from backends.model.variant import Variant
from nfparity.migrate.planning.plan import families_in
from nfparity.migrate.state import owned
from nfparity.migrate.state.journal import Steps, read_steps
from nfparity.migrate.state.owned import Owned
from nfparity.migrate.state.place import MigrationPlace
from nfparity.migrate.state.record import Phase, Record, Saved
from nfparity.migrate.state.saved import SavedFamily, SealError
from nfparity.persistent_state.disk import read_content
from nfparity.persistent_state.reservedlog import ReservedLog
from translate.dataclass import dataclass, replace
from translate.errors import MachineError
from translate.ir import Family
from translate.nft import TABLE

__all__ = ["Remains", "survey"]

_UNMARKED: Final = "the loaded table has no mark of nfparity migrate: another program has loaded it"
_PROGRAM: Final = {Family.IP: "iptables", Family.IP6: "ip6tables"}


@dataclass(frozen=True, slots=True)
class Lost:
    """The reasons why a family's rules cannot be restored, and their possible variants."""

    reasons: tuple[str, ...]
    variants: tuple[Variant, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Remains:
    """The remains of a migration.

    ``record`` is the record of this namespace, if it is readable; ``trouble`` is the reason if it is not.
    ``foreign``: the files belong to another namespace or machine. ``loaded`` are the tables named
    ``nfparity``; ``families`` can be restored; ``lost`` are the reasons for families that cannot.
    """

    place: MigrationPlace
    record: Record | None
    trouble: str | None
    foreign: bool
    loaded: Mapping[Family, Owned]
    steps: Steps
    families: tuple[SavedFamily, ...]
    lost: Mapping[Family, Lost]

    @property
    def is_nothing(self) -> bool:
        """True if nothing was applied here, or everything was rolled back."""
        if self.loaded:
            return False
        if self.foreign:
            return True
        if self.record is not None:
            return self.record.phase is Phase.ROLLED_BACK
        if "done rolled back" in self.steps:
            return True
        begun = any(line.startswith("begin load ") for line in self.steps.lines)
        return self.trouble is None and not begun and not self.families and not self.lost

    def nothing_left(self) -> str:
        """Return advice for a begun migration whose table and rules are gone."""
        trouble = self.trouble or f"{self.place.record} is not there"
        return (
            f"{trouble}; there are no saved rules, and no nftables table of nfparity is loaded\n"
            f"if rules are missing, restore them from a copy; then: rm -r {self.place.folder}"
        )

    def by_hand(self) -> tuple[str, ...]:
        """Return lines: the reasons why families cannot be restored, and the commands that restore a copy."""
        return tuple(line for family in self.lost for line in self._by_hand(family))

    def _by_hand(self, family: Family) -> Iterator[str]:
        name, table = family.value, self.loaded.get(family)
        yield f"the old {name} rules cannot be restored from {self.place.folder}:"
        yield from (f"- {reason}" for reason in self.lost[family].reasons)
        folder = None if table is None or table.mark is None else table.mark.folder
        if folder is not None and Path(folder) != self.place.folder:
            yield f"they are kept in {folder}: nfparity migrate rollback --state {folder}"
            return
        variants = self.lost[family].variants or tuple(Variant)
        programs = [f"{_PROGRAM[family]}-{variant.value}-restore" for variant in variants]
        yield "by hand, with a copy of these rules in file COPY (or let kube-proxy write its rules again):"
        other = f"   # or {programs[1]}, for rules of that variant" if programs[1:] else ""
        yield f"  {programs[0]} < COPY{other}"
        if table is not None:
            yield f"  nft delete table {name} {TABLE}   # only after that: it protects the node until then"
        yield f"  rm -r {self.place.folder}   # when everything works again"


def survey(place: MigrationPlace) -> Remains:
    """Return the remains in the kernel and on disk. Raises MachineError if nft cannot be run."""
    loaded = {family: remains for family in Family if (remains := owned.find(family)) is not None}
    record, trouble = None, None
    try:
        record = Record.read(place.record)
    except MachineError as e:
        trouble = str(e)
    foreign = record is not None and not record.is_of(place)
    unfinished = record is not None and not foreign and record.phase is not Phase.ROLLED_BACK
    sources = _Sources(place)
    wanted: dict[Family, Saved | None] = {}
    if record is None or (unfinished and not record.saved):  # which older versions did not write
        wanted = dict.fromkeys(sources.families)
    elif unfinished:
        wanted = dict(record.saved)
    families: list[SavedFamily] = []
    lost: dict[Family, Lost] = {}
    for family, remains in loaded.items():
        if remains.mark is not None:
            wanted[family] = Saved(remains.mark.variant, remains.mark.digest)
        elif not unfinished:
            wanted.pop(family, None)
            lost[family] = Lost((_UNMARKED,))
    for family, needed in wanted.items():
        table = loaded.get(family)
        saved = sources.best(family, needed, certain=table is not None and table.mark is not None)
        if saved is None:
            lost[family] = sources.lost(family, needed)
        else:
            families.append(saved)
    return Remains(
        place=place,
        record=None if foreign else record,
        trouble=trouble,
        foreign=foreign,
        loaded=loaded,
        steps=Steps((), whole=False) if foreign else read_steps(ReservedLog(place.journal)),
        families=tuple(families),
        lost=lost,
    )


@dataclass(frozen=True, slots=True)
class _Source:
    path: Path
    saved: SavedFamily
    doubt: str | None


class _Sources:
    """All remaining copies of saved rules."""

    def __init__(self, place: MigrationPlace) -> None:
        self._problems: dict[Family | None, list[str]] = {None: [], **{family: [] for family in Family}}
        self._copies: list[_Source] = []
        planned = self._planned(place.plan)
        for family in Family:
            same = [source for source in planned if source.saved.family is family]
            self._copies += [*self._own(place.rules(family), family, same), *same]

    @property
    def families(self) -> tuple[Family, ...]:
        """The families of which a copy of the rules exists."""
        return tuple(dict.fromkeys(source.saved.family for source in self._copies))

    def best(self, family: Family, wanted: Saved | None, *, certain: bool) -> SavedFamily | None:
        """Return the best copy of the rules, which must be the ``wanted`` ones if these are known.

        If ``wanted`` is ``certain``, because only root can have set it, the owner of the file does not
        matter.
        """
        for source in self._copies:
            if source.saved.family is not family:
                continue
            if wanted is not None and source.saved.digest != wanted.digest:
                self._problems[family].append(
                    f"{source.path}: it contains other rules than those that were replaced"
                )
            elif source.doubt is not None and not certain:
                self._problems[family].append(f"{source.path}: it cannot be trusted: {source.doubt}")
            else:
                return source.saved
        return None

    def lost(self, family: Family, wanted: Saved | None) -> Lost:
        """Return the reasons why no copy could be used."""
        reasons = dict.fromkeys((*self._problems[family], *self._problems[None]))
        variants = (source.saved.variant for source in self._copies if source.saved.family is family)
        return Lost(tuple(reasons), tuple(dict.fromkeys(variants)) if wanted is None else (wanted.variant,))

    def _planned(self, path: Path) -> list[_Source]:
        try:
            content = read_content(path)
            if content is None:
                self._problems[None].append(f"{path}: there is no such file")
                return []
            saved = families_in(content.data.decode())
        except (MachineError, ValueError) as e:
            self._problems[None].append(f"{path}: {e}")
            return []
        return [_Source(path, family, content.doubt) for family in saved]

    def _own(self, path: Path, family: Family, planned: list[_Source]) -> Iterator[_Source]:
        try:
            content = read_content(path)
            if content is None:
                self._problems[family].append(f"{path}: there is no such file")
                return
            saved = _unsealed(content.data, planned)
            if saved.family is not family:
                raise ValueError(f"it contains the rules of {saved.family.value}")
        except (MachineError, ValueError) as e:
            self._problems[family].append(f"{path}: {e}")
            return
        ipsets = next((source.saved.ipsets for source in planned if source.saved.digest == saved.digest), "")
        yield _Source(path, replace(saved, ipsets=ipsets), content.doubt)


def _unsealed(data: bytes, planned: list[_Source]) -> SavedFamily:
    """Return the rules of a file; a file of an older version without a seal must agree with the plan."""
    try:
        return SavedFamily.from_file(data)
    except SealError:
        text = data.decode(errors="surrogateescape")
        for source in planned:
            copy = SavedFamily(
                family=source.saved.family, variant=source.saved.variant, left=source.saved.left, text=text
            )
            if copy.digest == source.saved.digest:
                return copy
        raise
