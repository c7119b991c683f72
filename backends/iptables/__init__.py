"""Backends iptables-legacy and iptables-nft: rules as read, loaded by ``iptables-restore``."""

__all__: list[str] = []
