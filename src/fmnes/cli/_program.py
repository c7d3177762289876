"""An external program as an objective: it reads the variables and prints the value.

The program runs in a worker process of an `Evaluator` and belongs to the worker's process group. So
it ends, with all processes that it started, when its time is up, when the search is interrupted,
and when the search itself is killed.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from fmnes._checks import count
from fmnes.cli._errors import UsageError
from fmnes.variables.space import plain

_PLACEHOLDER = "{file}"
_SHOWN = 200  # characters of a program's output in an error message
# Words by which a shell would connect programs and files, also right behind {file}.
_SHELL = re.compile(r"\d?[<>]|[|&;]|\S*\{file\}[<>|&;]")
# What only a shell makes of a word: $HOME/simulate, ~/simulate, *.sh, NAME=value, `which simulate`.
_EXPANDED = re.compile(r"[$~`]|\w+=|.*\*")
# How people may write {file}: {}, {x}, {input}, also behind --in=.
_MISNAMED = re.compile(r"(\S*=)?\{(|0|x|path|input|params?|variables)\}", re.IGNORECASE)


@dataclass(frozen=True)
class ExternalProgram:
    """Gives a program the variables, and returns the number that it prints last.

    The variables are numbers, one per line; named variables are a JSON object.
    """

    words: tuple[str, ...]
    cwd: str
    folder: str  # for the files with the variables
    constraints: int = 0  # that the program prints after the value

    @classmethod
    def parse(cls, command: str, cwd: str, folder: str, constraints: int = 0) -> "ExternalProgram":
        """Split a command as a shell would, and check that the program exists."""
        try:
            words = _split(command)
        except ValueError as error:
            raise UsageError(f"--command: expected a command, got {command!r} ({error})") from None
        if not words:
            raise UsageError("--command: expected a command, got an empty one")
        _check_words(command, words)
        program = os.path.join(cwd, words[0]) if os.path.dirname(words[0]) else words[0]
        if shutil.which(program) is None:
            hint = _hint_of_missing(cwd, words[0])
            raise UsageError(f"--command: expected a program that exists, got {words[0]!r}{hint}")
        return cls(tuple(words), cwd, folder, constraints)

    def __call__(self, x: Any) -> float | tuple[float, list[float]]:
        """Return the value of one candidate, with constraints as (f, g).

        RuntimeError if the program prints none.
        """
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
                last = _last(errors.read())[:_SHOWN]
                why = f": {last}" if last else ""
                raise RuntimeError(f"{self._name} {_end(done.returncode)}{why}")
            return self._value(output.read())

    def _value(self, output: str) -> float | tuple[float, list[float]]:
        line = _last(output)
        expected = "a number"
        if self.constraints:
            expected = f"the value and {count(self.constraints, 'constraint')}"
        try:
            numbers = [float(word) for word in line.replace(",", " ").split()]
        except ValueError:
            numbers = []
        if len(numbers) != 1 + self.constraints:
            several = len(numbers) > 1 and not self.constraints
            hint = f" (further numbers are constraints: --constraints {len(numbers) - 1})" * several
            raise RuntimeError(
                f"{self._name}: expected {expected} on the last line of its output, got "
                f"{line[:_SHOWN]!r}{hint}"
            )
        return (numbers[0], numbers[1:]) if self.constraints else numbers[0]

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


def _check_words(command: str, words: list[str]) -> None:
    """Raise a UsageError for what only a shell does, and for another name of {file}."""
    for word in words:
        if _SHELL.match(word) or word.endswith(";"):
            raise UsageError(
                f"--command: expected one program, because no shell runs it, got {word!r} in "
                f"{command!r}; use sh -c '...' for pipes and redirections"
            )
        is_misspelt = "{file" in word.lower() and _PLACEHOLDER not in word
        if is_misspelt or _MISNAMED.fullmatch(word):
            raise UsageError(f"--command: expected {_PLACEHOLDER}, got {word!r} in {command!r}")


def _hint_of_missing(cwd: str, word: str) -> str:
    """Return what to do about a program that is not found."""
    if _EXPANDED.match(word):
        return " (no shell runs the command, so nothing is expanded: use sh -c '...')"
    if re.fullmatch(r"[\w.]+:\w+", word):
        return f" (for a Python function: fmnes run {word}, without --command)"
    if not os.path.isfile(os.path.join(cwd, word)):
        return ""
    if os.path.dirname(word):
        return f" (a file that is not executable: chmod +x {word})"
    return f" (for the file here write ./{word})"


def _end(code: int) -> str:
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"exited with status {code}"


def _last(text: str) -> str:
    """Return the last line of a text; "" for an empty text."""
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else ""
