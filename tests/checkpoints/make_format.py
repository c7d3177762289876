"""Write ``formats/N``, the files of a search that has not ended, in the format of today.

Run once for each format that is released: ``python -m checkpoints.make_format`` in ``tests/``.
"""

import contextlib
import pathlib

import fmnes
from checkpoints.common import Counted, search, sphere, stairs
from fmnes.storage.npz import FORMAT


def main():
    folder = pathlib.Path(__file__).parent / "formats" / str(FORMAT)
    folder.mkdir()
    opt = fmnes.Optimizer([3.0] * 5, 1.0, method="cr-fm-nes", rng=1)
    for _ in range(3):
        opt.tell([sphere(x) for x in opt.ask()])
    opt.save(folder / "search.npz")
    with contextlib.suppress(RuntimeError):
        search(Counted(end_at=5 * 8 + 4), folder / "run.npz", method="cr-fm-nes", ftarget=1e-8)
    options = {"method": "cr-fm-nes", "restarts": 2, "maxfevals": 2400}
    search(stairs, folder / "restarts.npz", **options)
    for name in ("previous", "journal", "journal.previous"):
        (folder / f"restarts.npz.{name}").unlink()


if __name__ == "__main__":
    main()
