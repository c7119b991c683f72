"""Routing of the two families: tables, source addresses, and packets that are not received."""
