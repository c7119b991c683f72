"""Backend nftables: our translation, loaded through libnftables."""

__all__: list[str] = []
