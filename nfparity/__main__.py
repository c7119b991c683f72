"""The command as ``python -m nfparity``."""

import sys

from nfparity.cli import main

if __name__ == "__main__":
    sys.exit(main())
