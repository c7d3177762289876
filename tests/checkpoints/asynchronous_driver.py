"""An asynchronous search to be killed: ``python -m checkpoints.asynchronous_driver PATH LOG``."""

import json
import sys
import time

import fmnes


def fun(x):
    time.sleep(0.01 * (1 + abs(x[0]) % 1))
    return float((x**2).sum())


def state(result):
    """The state after a generation, as text."""
    return [result.fun.hex(), result.sigma.hex(), result.mean.tobytes().hex(), result.nfev]


def search(path, **options):
    keep = fmnes.Checkpoint(path, every=0.3)
    return fmnes.minimize(
        fun, [3.0] * 4, 1.0, workers=2, asynchronous=True, rng=1, checkpoint=keep, **options
    )


def main(path, log):
    """Write a line for each generation; the journal knows its values by then."""
    with open(log, "a", encoding="utf-8") as file:

        def note(result):
            file.write(json.dumps([result.nit, state(result)]) + "\n")
            file.flush()

        search(path, callback=note)


if __name__ == "__main__":
    main(*sys.argv[1:])
