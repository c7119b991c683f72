"""The translator, without I/O: rules as text in, nftables text and tc programs out.

``read`` turns text into a :class:`~translate.ir.Ruleset`, ``passes`` lowers it to a
:class:`~translate.ir.Program`, ``write``, ``nft`` and ``bpf`` print. Nothing here does I/O, reads a
clock, draws a random number, needs root or imports anything beyond the standard library.
``backends`` and ``harness`` may import from here; this package imports from neither.
"""
