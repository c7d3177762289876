"""``python -m fmnes``: the command line."""

import sys

from fmnes._cli import main

sys.exit(main())
