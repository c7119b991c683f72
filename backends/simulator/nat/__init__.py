"""NAT: bindings of connections, and the rewriting of packets."""
