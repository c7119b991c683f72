"""Walks through the chains of a table: the plain one, which defines the result, and the fast one."""
