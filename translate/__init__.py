"""The translator, without I/O: rules as text in, nftables text and tc programs out.

``read`` turns text into a :class:`~translate.ir.Ruleset`, and ``passes`` lowers it to a
:class:`~translate.ir.Program`. ``nft`` and ``bpf`` print a Program; ``write`` prints a Ruleset. Nothing here
does I/O, reads a clock, draws a random number, needs root or anything beyond the standard library.
``dataclass`` makes the dataclasses of all packages. ``backends`` and ``harness`` may import from here; this
package imports from neither.
"""
