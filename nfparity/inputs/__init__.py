"""Inputs of commands: rules, batches of flows, rulesets to compare with. ``nfparity.cli`` imports it."""

__all__: list[str] = []
