"""``python -m harness.cli`` is ``nfparity``."""

import sys

from harness.cli.main import main

sys.exit(main())
