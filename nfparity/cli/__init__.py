"""The command line ``nfparity``: one module per command, imported only when it is asked for.

A command module has ``configure(parser)`` and ``run(arguments) -> int``. What they raise becomes a
message and an exit status here: 0 parity or done, 1 differences, 2 bad input, 3 environment,
4 no difference, but not everything was tested, 130 interrupted. Nobody imports this package but
``python -m nfparity.cli`` and the tests.
"""

from nfparity.cli.main import main

__all__ = ["main"]
