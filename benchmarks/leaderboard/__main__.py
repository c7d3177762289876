"""``python benchmarks/leaderboard``: makes the package importable, for worker processes too."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])

if __name__ == "__main__":
    from leaderboard.commands import main

    sys.exit(main())
