"""Routing of the two families: tables, source addresses, and the packets that are not received."""
