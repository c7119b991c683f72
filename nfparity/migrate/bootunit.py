"""The systemd unit that loads a confirmed translation at boot, before the network is configured.

It is ordered like Debian's ``nftables.service``, and after it and other programs that load rules at boot:
``nft flush ruleset`` in ``nftables.conf`` would otherwise delete the translation. ``kubelet`` and
``kube-proxy`` start later. The unit has no ``Conflicts=kube-proxy.service``: systemd would drop one of the
two start jobs of a boot, and the administrator would not know which.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from backends.testbed.command import find_tool, run
from nfparity.persistent_state.disk import remove, sync_folder, write_durably
from translate.errors import MachineError

__all__ = ["NAME", "disable", "enable", "is_enabled", "unit_text"]

NAME: Final = "nfparity-migrate.service"
_WANTS: Final = "sysinit.target.wants"
_RUNNING: Final = Path("/run/systemd/system")
"""Exists while systemd is the init process (``sd_booted(3)``)."""
_UNIT: Final = """\
# Written by nfparity migrate verify --confirm --at-boot; removed by nfparity migrate rollback.
[Unit]
Description=nftables translation of this node's iptables rules
Wants=network-pre.target
Before=network-pre.target shutdown.target kubelet.service kube-proxy.service
After=local-fs.target systemd-modules-load.service nftables.service
After=netfilter-persistent.service iptables.service ip6tables.service ufw.service firewalld.service
Conflicts=shutdown.target
DefaultDependencies=no
RequiresMountsFor={folder}

[Service]
Type=oneshot
RemainAfterExit=yes
StandardInput=null
ExecStart={python} -P -m nfparity migrate load --state {folder}

[Install]
WantedBy=sysinit.target
"""


def unit_text(folder: Path, python: str = sys.executable) -> str:
    """Return the unit that loads the translation whose state is in ``folder``."""
    return _UNIT.format(folder=_quoted(str(folder)), python=_quoted(python))


def enable(units: Path, folder: Path) -> Path:
    """Write the unit into the directory ``units`` and enable it; return its path. Raises MachineError."""
    path = units / NAME
    link = units / _WANTS / NAME
    try:
        link.parent.mkdir(parents=True, exist_ok=True)
        write_durably(path, unit_text(folder).encode())
        path.chmod(0o644)
        remove(link)
        # The link that systemctl enable makes for WantedBy=. A running systemd is not needed.
        link.symlink_to(path)
        sync_folder(link.parent)
    except OSError as e:
        raise MachineError(f"cannot enable {path}: {e.strerror}") from e
    _reload()
    return path


def is_enabled(units: Path | None) -> bool:
    """Return whether the unit is enabled."""
    return units is not None and os.path.lexists(units / _WANTS / NAME)


def disable(units: Path | None) -> None:
    """Remove the unit if it exists. Raises MachineError."""
    if units is None:
        return
    paths = [path for path in (units / _WANTS / NAME, units / NAME) if os.path.lexists(path)]
    try:
        for path in paths:
            remove(path)
    except OSError as e:
        raise MachineError(f"cannot remove {units / NAME}: {e.strerror}; remove it by hand") from e
    if paths:
        _reload()


def _reload() -> None:
    """Let a running systemd read its units again; a failure has no effect on the next boot."""
    if _RUNNING.is_dir() and find_tool("systemctl") is not None:
        run(("systemctl", "daemon-reload"))


def _quoted(word: str) -> str:
    """Return a path as a word of a unit (``systemd.syntax(7)``); ``%`` begins a specifier."""
    if any(ord(char) < 32 or char in "\"'\\$" for char in word):
        raise MachineError(f"a path with special characters cannot be in a unit: {word!r}")
    escaped = word.replace("%", "%%")
    return f'"{escaped}"' if " " in escaped else escaped
