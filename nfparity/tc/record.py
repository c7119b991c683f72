"""Record of a dataplane on disk: unfinished actions, state to restore, and the source of the program."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Self

from nfparity.persistent_state.disk import prepare_folder
from nfparity.persistent_state.recordfile import read_record, write_record
from translate.dataclass import asdict, dataclass, field, replace
from translate.errors import MachineError

__all__ = ["Phase", "Record", "Source"]


class Phase(Enum):
    """The phase of an action. In any phase but ``LOADED`` without a process, the action was interrupted."""

    LOADING = "loading"
    LOADED = "loaded"
    CHANGING = "changing"
    """Map entries are being changed, in an order in which every packet always finds complete entries."""
    REPLACING = "replacing"
    UNLOADING = "unloading"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The source of a program: the rules and the options.

    ``digest`` is the SHA-256 of the rules, ``text`` that of the C text without the sizes of maps. ``layout``
    identifies, by map, the form in which connections are stored. Without ``direct``, forwarded packets go
    through the network stack.
    """

    rules: str
    digest: str
    level: int
    text: str
    layout: Mapping[str, str]
    lists: bool
    direct: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The state of a dataplane. ``sysctls`` are the values before the first change, by device and name.

    ``rooms`` are the devices whose ``clsact`` was added by nfparity. ``previous`` and ``replaced`` are the
    generation that is being replaced and its source.
    """

    phase: Phase
    cookie: int
    source: Source
    since: str
    generation: int = 1
    previous: int | None = None
    replaced: Source | None = None
    sysctls: Mapping[tuple[str, str], str] = field(default_factory=dict)
    rooms: tuple[int, ...] = ()

    def at(self, phase: Phase, **changes: Any) -> Self:
        """Return the record in another phase."""
        return replace(self, phase=phase, **changes)

    def write(self, path: Path) -> None:
        """Write the record to disk. Raises MachineError; the previous record is then intact."""
        data = asdict(replace(self, sysctls={}))  # its keys are not strings
        data["phase"] = self.phase.value
        data["sysctls"] = [[*key, value] for key, value in self.sysctls.items()]
        prepare_folder(path.parent)
        write_record(path, data)

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Return the record on disk, or None. Raises MachineError for an invalid record."""
        content = read_record(path)
        if content is None:
            return None
        try:
            data = dict(content)
            data["phase"] = Phase(data["phase"])
            data["source"] = Source(**data["source"])
            if data["replaced"] is not None:
                data["replaced"] = Source(**data["replaced"])
            data["sysctls"] = {(device, name): value for device, name, value in data["sysctls"]}
            data["rooms"] = tuple(data["rooms"])
            return cls(**data)
        except (ValueError, TypeError, KeyError, AttributeError) as e:
            raise MachineError(f"{path} is not a record of a dataplane: {e}") from e
