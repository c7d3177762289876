"""The files of a search whose variables are split over processes: one for each process."""

import os
import re
from pathlib import Path
from typing import Any, NamedTuple

from fmnes.storage import npz
from fmnes.storage.contents import SHARD


class ShardFiles(NamedTuple):
    """The files of one process in a folder; their names have its rank and the generation."""

    folder: Path
    rank: int
    size: int

    @property
    def _prefix(self) -> str:
        return f"shard-{self.rank}-of-{self.size}-generation-"

    def path(self, generation: int) -> Path:
        """The file of a generation."""
        return self.folder / f"{self._prefix}{generation}.npz"

    @property
    def generations(self) -> set[int]:
        """The generations that have a file."""
        pattern = re.compile(re.escape(self._prefix) + r"(\d+)\.npz")
        names = os.listdir(self.folder) if self.folder.is_dir() else []
        return {int(found[1]) for name in names if (found := pattern.fullmatch(name))}

    def write(self, generation: int, content: dict[str, Any]) -> None:
        """Write the file of a generation, completely or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        npz.write(self.path(generation), content)

    def read(self, generation: int) -> dict[str, Any]:
        """What the file of a generation holds."""
        return npz.read(self.path(generation), SHARD, "folder")

    def remove(self, generations: set[int]) -> None:
        """Remove the files of these generations."""
        for generation in generations:
            self.path(generation).unlink()
