"""Refusals of features that nftables lacks or that differ there, with the rule's place and the reason."""
