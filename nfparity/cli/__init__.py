"""The command line ``nfparity``: one module per command, imported only when the command runs.

A command module has ``configure(parser)`` and ``run(arguments) -> int``. ``main`` turns their exceptions into
a message and an exit status: 0 parity or done, 1 differences, 2 bad input, 3 the machine lacks something, 4
no difference, but not everything was tested, 130 interrupted. Only ``python -m nfparity.cli`` and tests
import it.
"""

from nfparity.cli.main import main

__all__ = ["main"]
