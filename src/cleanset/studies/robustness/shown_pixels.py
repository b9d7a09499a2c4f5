"""The SHA-256 of the pixels of every changed image, kept while models are shown them.

Making the images takes longer than anything but a model, so that they are not made a second time for their digests. The
digests are those of stage digests. A file of them has a label, the digest of what the images depend on, and a line for
each: its digest and its name.
"""

import json
import os
import re
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from cleanset.errors import CleansetError
from cleanset.files import read_bytes, write_text
from cleanset.images.codec import pixels_sha256
from cleanset.machine import available_cores
from cleanset.progress import tracked
from cleanset.scoring.shards import fingerprint
from cleanset.studies.robustness.changed_images import ChangedImages
from cleanset.studies.robustness.digests import DigestRun
from cleanset.studies.robustness.families import ChangePlan
from cleanset.studies.robustness.images import Sources
from cleanset.studies.robustness.provenance import changing_code
from cleanset.studies.robustness.settings import StudyParams

_LINE = re.compile("([0-9a-f]{64})  (.+)")


@dataclass(frozen=True, slots=True)
class RecordedImages:
    """Changed images whose digests are appended to a file as they are made; a callable that can be pickled."""

    changed: ChangedImages
    path: Path

    def __call__(self, name: str) -> Image.Image:
        """The changed image; errors as those of `changed`."""
        image = self.changed(name)
        append_line(self.path, f"{pixels_sha256(image)}  {name}")
        return image


def append_line(path: Path, line: str) -> None:
    """Append a line by one write, as several processes do at once; O_APPEND keeps each whole."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        os.write(descriptor, f"{line}\n".encode())
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True, eq=False)
class ShownPixels:
    """The digests of a family's changed images, in the file `path`."""

    path: Path
    plan: ChangePlan
    sources: Sources
    params: StudyParams

    def start(self) -> None:
        """Make the file unless there is one of the same images."""
        if self._lines()[:1] != [self._label()]:
            write_text(self.path, f"{self._label()}\n")

    def found(self) -> dict[str, str]:
        """The digests in the file by name. Raises CleansetError for an image that was made with two digests."""
        found: dict[str, str] = {}
        # the last line may be half written, after a kill
        for digest, name in (match.groups() for match in map(_LINE.fullmatch, self._lines()[1:]) if match):
            if found.setdefault(name, digest) != digest:
                raise CleansetError(
                    f"{self.path}: {name} has digest {found[name]} and, made again, {digest}; expected the same pixels "
                    "each time: remove the file and run again"
                )
        return found

    def is_complete(self) -> bool:
        """Whether every changed image has its digest."""
        return self._names() <= self.found().keys()

    def finish(self) -> dict[str, str]:
        """The digests of all changed images by name; missing ones are made now. Writes them sorted."""
        self.start()  # an earlier version left answers without digests
        missing = sorted(self._names() - self.found().keys())
        if missing:
            self._make(missing)
        found = self.found()
        digests = {name: found[name] for name in sorted(self._names())}
        write_text(self.path, "\n".join([self._label(), *(f"{each}  {name}" for name, each in digests.items()), ""]))
        return digests

    def _make(self, names: Sequence[str]) -> None:
        run = self._run(available_cores())
        with closing(run.digests([f"{self.plan.name} {name}" for name in names])) as digests:
            for name, digest in zip(names, tracked(digests, len(names), f"digests {self.plan.name}"), strict=True):
                append_line(self.path, f"{digest}  {name}")

    def _run(self, workers: int) -> DigestRun:
        return DigestRun([self.plan], self.sources, self.params, workers)

    def _label(self) -> str:
        return fingerprint(json.dumps(self._run(1).record()), changing_code())

    def _names(self) -> set[str]:
        return set(map(str, self.plan.names()))

    def _lines(self) -> list[str]:
        try:
            return read_bytes(self.path).decode("utf-8", "replace").split("\n")
        except FileNotFoundError:
            return []
