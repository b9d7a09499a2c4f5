"""The plan of `cleanset hints`: a look at each image, with its text if that is read."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

from cleanset.errors import CleansetError
from cleanset.planning.work import IMAGE_BYTES, Count, Plan, Work
from cleanset.plumbing.machine import available_cores
from cleanset.plumbing.progress import tracked
from cleanset.report.hints import CUSTOM, HintedPlace, images_in, is_text_read, look_of
from cleanset.review.hints.hints import Measuring
from cleanset.review.hints.kinds import measured_hints
from cleanset.review.hints.text import usual_text_files
from cleanset.scoring.parts import NOTHING, FinishedPart

LOOKED_AT = 24
"""Images that are looked at to measure it; the text of one takes a second of all cores."""


def counting(place: str, text: bool | None, custom: Sequence[str] = ()) -> Count:
    """Counts the images in a place; nothing is written. Raises CleansetError as `hints` does."""
    hints = measured_hints(custom, CUSTOM)
    images = images_in(place)
    return _Hinted(images=images, reads_text=is_text_read(len(images.read), text), hints=hints).plan


@dataclass(kw_only=True)
class _Hinted:
    """The images of a request."""

    images: HintedPlace
    reads_text: bool
    hints: Measuring
    part: FinishedPart = NOTHING
    """What was looked at to measure it."""

    def plan(self) -> Plan:
        """One row."""
        count = len(self.images.read)
        work = Work(name="hints", images=count, part=self.part, bytes_read=count * IMAGE_BYTES, start=self.start)
        return Plan(name=str(self.images.source), works=[work])

    def start(self) -> None:
        """Look at the first images; their text is kept."""
        first = list(self.images.read.values())[:LOOKED_AT]
        kept = usual_text_files()
        begin = monotonic()
        for read in tracked(first, len(first), "measuring"):
            if isinstance(problem := look_of(read, kept=kept, reads_text=self.reads_text, hints=self.hints), str):
                raise CleansetError(f"{self.images.source}: an image cannot be read ({problem}); expected whole images")
        # the command has a process for each core
        self.part = FinishedPart(images=len(first), seconds=(monotonic() - begin) / available_cores())
