"""Starting `program.py`, with hard time limits: a hang must fail, not block."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
LIMIT = 240  # seconds for everything that one program does
NEEDS = {  # pool -> (modules, extra)
    "loky": (("loky",), "workers"),
    "dask": (("distributed",), "dask"),
    "dask-factory": (("distributed",), "dask"),
    "ray": (("ray",), "ray"),
    "mpi": (("mpi4py",), "mpi"),
    "submitit": (("submitit",), "slurm"),
    "slurm-submitit": (("submitit",), "slurm"),
    "slurm-dask": (("distributed", "dask_jobqueue"), "slurm"),
}


def lacking(pool):
    """Why an pool cannot run here, or None."""
    modules, extra = NEEDS.get(pool, ((), ""))
    absent = [name for name in modules if find_spec(name) is None]
    return f"needs {', '.join(absent)}: pip install 'fmnes[{extra}]'" if absent else None


class Program:
    """A running `program.py`, in a process group and session of its own."""

    def __init__(self, pool, folder, *scenarios, prefix=(), environment=None):
        python = [sys.executable, *(("-m", "mpi4py.futures") if pool == "mpi" else ())]
        path = os.pathsep.join([str(HERE.parent), *(p for p in sys.path if p)])
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed with the program
        self.process = subprocess.Popen(
            [*prefix, *python, str(HERE / "start.py"), pool, str(folder), *scenarios],
            env={**os.environ, **(environment or {}), "PYTHONPATH": path},
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            start_new_session=True,
        )

    def answers(self, limit=LIMIT):
        """What each scenario printed; the program has ended after this."""
        try:
            out, _ = self.process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
            out, _ = self.process.communicate()
        lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        return {line.pop("scenario"): line for line in lines}

    def wait_until_ready(self):
        """Until it says so, in a line of its own."""
        if not any(line.strip() == "ready" for line in self.process.stdout):
            raise AssertionError(self.errors())

    def errors(self):
        """The end of what it wrote to standard error."""
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")[-3000:]

    def signal(self, number):
        """To the whole process group, as a terminal or a batch system does it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def close(self):
        self.signal(signal.SIGKILL)
        self.process.communicate()
        self._errors.close()
