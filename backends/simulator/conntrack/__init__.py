"""Connection tracking: the table of connections, tuples, and the TCP state machine."""
