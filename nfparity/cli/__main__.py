"""``python -m nfparity.cli`` is ``nfparity``."""

import sys

from nfparity.cli.main import main

sys.exit(main())
