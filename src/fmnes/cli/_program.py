"""An external program as an objective: it reads the variables and prints the value.

The program runs in a worker process of an `Evaluator` and belongs to the worker's process group. So
it ends, with all processes that it started, when its time is up, when the search is interrupted,
and when the search itself is killed.
"""

import json
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from fmnes._space import plain
from fmnes.cli._errors import UsageError

_PLACEHOLDER = "{file}"


@dataclass(frozen=True)
class Program:
    """Gives a program the variables, and returns the number that it prints last.

    The variables are numbers, one per line; named variables are a JSON object.
    """

    words: tuple[str, ...]
    cwd: str
    folder: str  # for the files with the variables

    @classmethod
    def parse(cls, command: str, cwd: str, folder: str) -> "Program":
        """Split a command as a shell would, and check that the program exists."""
        try:
            words = _split(command)
        except ValueError as error:
            raise UsageError(f"--command: expected a command, got {command!r} ({error})") from None
        if not words:
            raise UsageError("--command: expected a command, got an empty one")
        program = os.path.join(cwd, words[0]) if os.path.dirname(words[0]) else words[0]
        if shutil.which(program) is None:
            raise UsageError(f"--command: expected a program that exists, got {words[0]!r}")
        return cls(tuple(words), cwd, folder)

    def __call__(self, x: Any) -> float:
        """Return the value of one candidate; RuntimeError if the program prints none."""
        text = json.dumps(plain(x)) + "\n" if isinstance(x, dict) else _lines(x)
        words, stdin = list(self.words), text
        if any(_PLACEHOLDER in word for word in words):
            file = Path(self.folder, f"{os.getpid()}.txt")  # a worker runs one program at a time
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
            words, stdin = [word.replace(_PLACEHOLDER, str(file)) for word in words], ""
        # Files and not pipes: a process that the program leaves behind would keep a pipe open.
        with _temporary() as output, _temporary() as errors:
            done = subprocess.run(  # noqa: S603  the user asked for it
                words,
                input=stdin,
                cwd=self.cwd,
                stdout=output,
                stderr=errors,
                text=True,
                check=False,
            )
            output.seek(0)
            errors.seek(0)
            if done.returncode:
                last = _last(": ", errors.read())
                raise RuntimeError(f"{self._name} {_end(done.returncode)}{last}")
            return self._value(output.read())

    def _value(self, output: str) -> float:
        value = _last("", output)
        try:
            return float(value)
        except ValueError:
            raise RuntimeError(
                f"{self._name}: expected a number on the last line of its output, got {value!r}"
            ) from None

    @property
    def _name(self) -> str:
        """The script, if the command runs one with an interpreter; else the program."""
        return next((word for word in self.words[1:] if os.path.isfile(word)), self.words[0])


def _lines(x: Any) -> str:
    return "".join(f"{value!r}\n" for value in x.tolist())


def _temporary() -> IO[str]:
    return tempfile.TemporaryFile("w+", errors="replace")


def _split(command: str) -> list[str]:
    """Split a command into words; on Windows backslashes separate folders and escape nothing."""
    if os.name == "nt":
        return [word.strip('"') for word in shlex.split(command, posix=False)]
    return shlex.split(command)


def _end(code: int) -> str:
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"exited with status {code}"


def _last(before: str, text: str) -> str:
    """Return ``before`` and the last line of the text, shortened; "" for an empty text."""
    lines = text.strip().splitlines()
    return f"{before}{lines[-1].strip()[:200]}" if lines else ""
