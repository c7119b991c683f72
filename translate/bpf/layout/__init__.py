"""Structures, maps and programs that generated C, the runtime and Python share.

``structures`` has the types of C and their layout; ``tables`` declares the structures and maps of the
runtime, and ``maps`` those of rules and ipsets. ``programs`` and ``counters`` number the programs and the
counters.
"""
