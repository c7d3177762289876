"""Ten minutes of optimization under a fault injector; nothing may be lost.

    python benchmarks/soak.py [seconds]

A driver runs one search in worker processes, with a checkpoint. Every two seconds something
happens: a worker is killed, hangs, raises, an evaluation returns NaN, or the driver itself gets
SIGKILL and is started again. At the end the search is done once more, serially and undisturbed but
for the same NaNs, and has to give the same bits. Figures are printed and kept in
benchmarks/results/soak.json.
"""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

import fmnes

RESULTS = Path(__file__).parent / "results" / "soak.json"
KINDS = ("worker kill", "hang", "raise", "nan", "driver kill")
EVERY = 2.0  # seconds between two faults
TIMEOUT = 1.0  # seconds that an evaluation may take
DIM, POPSIZE = 200, 24
STATUS = "terminated"  # how the last driver has to end


# === The objective, which follows orders ===


def objective(x, folder):
    """Rosenbrock, after five milliseconds; the first one to find an order follows it."""
    folder, name = Path(folder), hashlib.blake2b(x.tobytes(), digest_size=12).hexdigest()
    log(folder / "calls", name)
    time.sleep(0.005)
    if not (folder / "nan" / name).exists():
        follow(folder, name)
    if (folder / "nan" / name).exists():  # for good: what was evaluated once may be so again
        return np.nan
    return rosenbrock(x)


def rosenbrock(x):
    return float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))


def follow(folder, name):
    """Take the oldest order, if there is one, and do what it says."""
    for order in sorted((folder / "orders").iterdir()):
        kind = order.name.split("-")[1]
        try:
            order.rename(folder / "taken" / order.name)
        except FileNotFoundError:  # another worker was quicker
            continue
        log(folder / "faults", kind)
        if kind == "worker kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif kind == "hang":
            time.sleep(1000)
        elif kind == "raise":
            raise RuntimeError("the licence server was busy")
        (folder / "nan" / name).touch()
        return


def log(path, text):
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{text}\n".encode())
    os.close(descriptor)


# === The driver ===


def drive(folder):
    """Run the search, or go on with it, until SIGTERM."""
    with fmnes.Evaluator(2, timeout=TIMEOUT, retries=5) as evaluator:
        result = search(objective, folder, workers=evaluator, checkpoint=Path(folder) / "search")
    Path(folder, "result").write_text(json.dumps(told(result)))


def search(fun, folder, **how):
    never = fmnes.Stopping(tolx=0.0, tolfun=0.0)
    start = np.zeros(DIM)
    return fmnes.minimize(
        fun,
        start,
        0.5,
        args=(str(folder),),
        method="cr-fm-nes",
        popsize=POPSIZE,
        rng=7,
        stopping=never,
        **how,
    )


def told(result):
    """How it ended, and a digest of everything but seconds."""
    history = result.history.to_array()
    names = [name for name in history.dtype.names if not name.startswith("seconds")]
    digest = hashlib.sha256(result.x.tobytes() + result.mean.tobytes())
    for name in names:
        digest.update(np.ascontiguousarray(history[name]).tobytes())
    digest.update(repr((result.fun, result.sigma, result.nfev, result.nfailed)).encode())
    return {
        "status": str(result.status),
        "generations": result.nit,
        "evaluations": result.nfev,
        "nfailed": result.nfailed,
        "best": result.fun,
        "digest": digest.hexdigest(),
    }


def undisturbed(x, folder):
    """The same values without waiting and without orders."""
    name = hashlib.blake2b(x.tobytes(), digest_size=12).hexdigest()
    return np.nan if Path(folder, "nan", name).exists() else rosenbrock(x)


# === The injector ===


def soak(folder, seconds):
    """Give orders and kill drivers for so long; the faults that happened."""
    for name in ("orders", "taken", "nan"):
        (folder / name).mkdir()
    rng = random.Random(1)
    driver, end, number = start(folder), time.monotonic() + seconds, 0
    while time.monotonic() < end:
        time.sleep(EVERY * rng.uniform(0.5, 1.5))
        kind = KINDS[number % len(KINDS)]
        if kind == "driver kill":
            log(folder / "faults", kind)
            driver.kill()
            driver.wait()
            driver = start(folder)
        else:
            (folder / "orders" / f"{number:05}-{kind}").touch()
        number += 1
        if driver.poll() is not None:
            raise SystemExit(f"the driver ended by itself, with code {driver.returncode}")
    wait_for_a_calm_moment(folder, driver)
    driver.terminate()
    driver.wait(timeout=60)
    return Counter((folder / "faults").read_text().splitlines())


def start(folder):
    return subprocess.Popen([sys.executable, __file__, "--drive", str(folder)])


def wait_for_a_calm_moment(folder, driver):
    """Until every order was followed, and the driver is far enough to listen to SIGTERM."""
    while any((folder / "orders").iterdir()):
        time.sleep(0.1)
    before = (folder / "calls").stat().st_size
    while (folder / "calls").stat().st_size == before and driver.poll() is None:
        time.sleep(0.1)
    time.sleep(2 * TIMEOUT)


def main(seconds=600.0):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        begun = time.monotonic()
        faults = soak(folder, float(seconds))
        elapsed = time.monotonic() - begun
        ended = json.loads((folder / "result").read_text())
        calls = Counter((folder / "calls").read_text().splitlines())
        again = told(search(undisturbed, folder, maxiter=ended["generations"]))
    figures = {
        "seconds": round(elapsed, 1),
        "generations": ended["generations"],
        "evaluations told": ended["evaluations"],
        "evaluations begun": calls.total(),
        "candidates begun": len(calls),
        "faults": dict(faults),
        "faults in all": faults.total(),
        "failed evaluations (the NaNs)": ended["nfailed"],
        "ended as": ended["status"],
        "result identical to an undisturbed run": ended["digest"] == again["digest"],
    }
    for what, figure in figures.items():
        print(f"{what}: {figure}")
    RESULTS.write_text(json.dumps(figures, indent=1) + "\n")
    if not figures["result identical to an undisturbed run"] or ended["status"] != STATUS:
        raise SystemExit("something was lost")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--drive"]:
        drive(sys.argv[2])
    else:
        main(*sys.argv[1:])
