"""Refusals of features that nftables lacks or implements differently, each with a rule and a reason."""
