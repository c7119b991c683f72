"""Drives backends: corpora in, replay, comparison, reports, and the command line.

May import ``translate`` and ``backends``; nothing imports it.
"""
