"""`python -m pyhudi`: the command line without its script."""

from __future__ import annotations

import sys

from pyhudi.cli import program

if __name__ == "__main__":
    sys.exit(program())
