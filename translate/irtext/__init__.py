"""The text form of a Program: ``parse_program(print_program(p)) == p``, with all origins.

Maintainers read it to see what a pass changed (``nfparity translate --to ir --after PASS``), and the tests of
passes are written in it. ``docs/ir.md`` has the grammar. It imports ``translate.ir`` and
``translate.errors``. The command line and tests import it; passes and emitters do not.
"""

from translate.irtext.parser import parse_program
from translate.irtext.printer import print_program

__all__ = ["parse_program", "print_program"]
