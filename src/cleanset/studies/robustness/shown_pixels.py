"""The SHA-256 of the pixels of every changed image that models were shown outside a study, in a file.

The digests are those of stage digests. The file has a label, the digest of what the images depend on, and a line for
each: its digest and its name.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from cleanset.files import read_bytes, write_text
from cleanset.progress import available_cores, rate_bar
from cleanset.scoring.shards import Shards
from cleanset.studies.robustness.digests import DigestRun, TakenDigests
from cleanset.studies.robustness.families import ChangePlan
from cleanset.studies.robustness.images import Sources
from cleanset.studies.robustness.settings import StudyParams

_LINE = re.compile("([0-9a-f]{64})  (.+)")


@dataclass(frozen=True, slots=True, eq=False)
class ShownPixels:
    """The digests of a family's changed images, in the file `path`."""

    path: Path
    plan: ChangePlan
    sources: Sources
    params: StudyParams

    def stored(self) -> dict[str, str] | None:
        """The digests in the file by name; None unless it has those of these images, every one."""
        try:
            label, *lines = read_bytes(self.path).decode("utf-8", "replace").splitlines()
        except (FileNotFoundError, ValueError):  # ValueError: an empty file
            return None
        matches = [match for match in map(_LINE.fullmatch, lines) if match]
        found = {match[2]: match[1] for match in matches}
        return found if label == self._run().label() and list(found) == sorted(self._run().names()) else None

    def taken(self) -> TakenDigests | None:
        """The shards for digests that are taken while models are shown the images; None where all are stored."""
        return None if self.stored() is not None else TakenDigests(self._shards())

    def finish(self) -> dict[str, str]:
        """The digests of all changed images by name; those that nothing has taken are made now. Writes the file."""
        found = self.stored()
        if found is not None:
            return found
        run, shards = self._run(), self._shards()
        with rate_bar(shards.total_images(), f"digests {self.plan.name}") as done:
            done(shards.finished_images(), 0.0)
            # earlier versions left answers without digests
            run.fill(shards, done)
        digests = dict(sorted(shards.table().itertuples(index=False, name=None)))
        write_text(self.path, "\n".join([run.label(), *(f"{each}  {name}" for name, each in digests.items()), ""]))
        shards.remove()
        return digests

    def _run(self) -> DigestRun:
        return DigestRun(self.plan, self.sources, self.params, available_cores())

    def _shards(self) -> Shards:
        return self._run().shards(self.path.with_suffix(".partial-shards"))
