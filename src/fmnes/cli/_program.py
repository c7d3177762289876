"""An external program as an objective: parameters in a file or on its input, value on its output.

It runs in a worker process of an `Evaluator`, whose process group it belongs to. So it ends, with
all that it has started, when its time is up, when the search is interrupted, and when the search
itself is killed.
"""

import os
import shlex
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fmnes.cli._errors import UsageError

_PLACEHOLDER = "{file}"


@dataclass(frozen=True)
class Program:
    """Calls a program with one number to a line, and returns the last line that it printed."""

    words: tuple[str, ...]
    cwd: str
    folder: str  # for the files of parameters

    @classmethod
    def parse(cls, command: str, cwd: str, folder: str) -> "Program":
        """Split a command as a shell would, without one; the program has to exist."""
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise UsageError(f"--command: expected a command, got {command!r} ({error})") from None
        if not words:
            raise UsageError("--command: expected a command, got an empty one")
        if shutil.which(os.path.join(cwd, words[0]) if "/" in words[0] else words[0]) is None:
            raise UsageError(f"--command: expected a program that exists, got {words[0]!r}")
        return cls(tuple(words), cwd, folder)

    def __call__(self, x: Any) -> float:
        """The value of one candidate; RuntimeError where the program gives none."""
        text = "".join(f"{value!r}\n" for value in x.tolist())
        words, stdin = list(self.words), text
        if any(_PLACEHOLDER in word for word in words):
            file = Path(self.folder, f"{os.getpid()}.txt")  # a worker does one thing at a time
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
            words, stdin = [word.replace(_PLACEHOLDER, str(file)) for word in words], ""
        done = subprocess.run(  # noqa: S603  it is what the user has asked for
            words,
            input=stdin,
            cwd=self.cwd,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{self._name} {_end(done.returncode)}{_last(': ', done.stderr)}")
        return self._value(done.stdout)

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
        """The program, or the script that an interpreter is to run."""
        return next((word for word in self.words[1:] if os.path.isfile(word)), self.words[0])


def _end(code: int) -> str:
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"exited with status {code}"


def _last(before: str, text: str) -> str:
    """The last line that is not empty, shortened."""
    lines = text.strip().splitlines()
    return f"{before}{lines[-1].strip()[:200]}" if lines else ""
