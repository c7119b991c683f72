"""The text form of a Program: ``parse_program(print_program(p)) == p``, and every origin is kept.

Maintainers read it to see what a pass changed (``nfparity translate --to ir --after PASS``), and the
tests of passes are written in it. ``docs/ir.md`` has the grammar. Imports ``translate.ir`` and
``translate.errors``; the command line and tests import it, no pass and no emitter does.
"""

from translate.irtext.parser import parse_program
from translate.irtext.printer import print_program

__all__ = ["parse_program", "print_program"]
