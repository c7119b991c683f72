"""Inputs of commands: rules, batches of flows, and nftables rulesets to compare with."""

__all__: list[str] = []
