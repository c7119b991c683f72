"""Features that nftables lacks or has otherwise: refused, with the rule's place and the reason."""
