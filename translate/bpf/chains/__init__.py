"""Chains of a Program as functions in C.

``statements``, ``lookups``, ``actions``, ``conditions`` and ``ipsets`` return C as ``code``: lines, and the
declarations that they need in the program. ``context`` has the names and numbers that they refer to.
"""
