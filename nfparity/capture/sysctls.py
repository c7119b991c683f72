"""The sysctls that affect packets, read from ``/proc/sys``."""

from __future__ import annotations

from pathlib import Path

__all__ = ["read_switches"]

_READ = (
    "net/ipv4/conf/*/rp_filter",
    "net/ipv4/conf/*/route_localnet",
    "net/ipv4/conf/*/accept_local",
    "net/ipv4/conf/*/forwarding",
    "net/ipv4/conf/*/send_redirects",
    "net/ipv4/conf/*/src_valid_mark",
    "net/ipv4/conf/*/proxy_arp",
    "net/ipv6/conf/*/forwarding",
    "net/ipv6/conf/*/disable_ipv6",
    "net/ipv6/conf/*/accept_ra",
    "net/ipv4/ip_forward",
    "net/ipv4/ip_local_port_range",
    "net/ipv4/ip_nonlocal_bind",
    "net/ipv6/ip_nonlocal_bind",
    "net/ipv4/fwmark_reflect",
    "net/ipv6/fwmark_reflect",
    "net/ipv4/tcp_fwmark_accept",
    "net/ipv4/fib_multipath_hash_policy",
    "net/ipv4/icmp_ratelimit",
    "net/ipv4/vs/*",
    "net/bridge/*",
    "net/netfilter/*",
    "net/netfilter/nf_log/*",
)


def read_switches(proc: Path) -> dict[str, str]:
    """Return values by name, spelled as by ``sysctl -a``: with a slash for each dot in a device's name."""
    base = proc / "sys"
    values: dict[str, str] = {}
    for pattern in _READ:
        for file in sorted(base.glob(pattern)):
            try:
                value = file.read_text().strip()
            except (OSError, ValueError):
                continue  # a folder, or a write-only file
            parts = file.relative_to(base).parts
            values[".".join(part.replace(".", "/") for part in parts)] = value
    return values
