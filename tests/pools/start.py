"""Starts `program`: worker processes import the main script, so there is nothing in it."""

import sys

if __name__ == "__main__":
    from pools.program import main

    main(*sys.argv[1:])
