"""Replaces directories of a lake by new ones, all of them or none, also after a crash.

The new version of LAKE/silver is built in LAKE/_silver.tmp/new, where no reader looks. Then:

    1  write the intent, LAKE/_checkpoints/swap.json, with all directories
    2  for each: rename the directory to _silver.tmp/old, and the new version to the directory
    3  delete the intent
    4  delete the old versions

Killed before the intent is written, nothing has changed, and the next run deletes the new versions. After
that the next run repeats steps 2 to 4. A reader may find a directory missing for a moment, and new tables
beside old ones until all are swapped.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from penstock.spark.lake.files import LakeFiles, temporary_of
from penstock.spark.lake.manifest import VERSION, damaged, parse_versioned
from penstock.spark.pipeline.definition.file import Pipeline
from penstock.spark.pipeline.definition.rules import CHECKPOINTS, lake_path

INTENT = "swap.json"


class Swap:
    """The swap of a pipeline's directories. Paths of directories are qualified."""

    def __init__(self, files: LakeFiles, pipeline: Pipeline) -> None:
        self._files = files
        self._intent = lake_path(pipeline, CHECKPOINTS, INTENT)

    @property
    def is_interrupted(self) -> bool:
        """Whether an intent was left."""
        return self._files.exists(self._intent)

    def discard(self, roots: Sequence[str]) -> None:
        """Delete the versions that an interrupted run has left."""
        for root in roots:
            unfinished = temporary_of(new_of(root))
            for version in (unfinished, new_of(root), feed_of(root), _old_of(root)):
                if self._files.exists(version):
                    self._files.delete(version)

    def commit(self, roots: Sequence[str]) -> None:
        """Swap in the new versions of all directories."""
        self._files.write(self._intent, json.dumps({"version": VERSION, "roots": list(roots)}))
        self._carry_out(roots)

    def finish(self) -> None:
        """Finish an interrupted swap, if there is one. Raises: ArchiveError."""
        try:
            given = parse_versioned(self._files.read(self._intent), self._intent)
        except FileNotFoundError:
            return
        roots = given.get("roots")
        if not isinstance(roots, list):
            raise damaged(self._intent)
        self._carry_out([str(root) for root in roots])

    def _carry_out(self, roots: Sequence[str]) -> None:
        for root in roots:
            if self._files.exists(new_of(root)):
                if self._files.exists(root):
                    self._files.rename(root, _old_of(root))
                self._files.rename(new_of(root), root)
            above, _, name = root.rpartition("/")
            self._files.sync_names(above, [name])
        self._files.delete(self._intent)
        self.discard(roots)


def new_of(root: str) -> str:
    """Where the new version of a directory is built."""
    return f"{temporary_of(root)}/new"


def feed_of(root: str) -> str:
    """Where the rows are written that the new version of a checkpoint starts with."""
    return f"{temporary_of(root)}/rows"


def _old_of(root: str) -> str:
    return f"{temporary_of(root)}/old"
