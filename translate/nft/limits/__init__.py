"""What nftables cannot do as iptables does it: refused, with the rule's place and the reason."""
