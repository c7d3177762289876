"""``python -m fmnes``: the command line."""

import sys

from fmnes.cli import main

sys.exit(main())
