"""Compiled tc programs and their maps in the kernel.

``compiler`` compiles a program with ``bcc``, ``cache`` keeps ``compiled`` programs on disk, and
``verifier_log`` explains why the kernel rejects one. ``program`` loads it, and ``bpfmap`` reads and writes
its maps by ``bpfcall``.
"""
