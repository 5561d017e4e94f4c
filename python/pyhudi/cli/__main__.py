"""`python -m pyhudi.cli`: the command line without its script."""

from __future__ import annotations

import sys

from pyhudi.cli import main

if __name__ == "__main__":
    sys.exit(main())
