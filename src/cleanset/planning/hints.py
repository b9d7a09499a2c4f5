"""The plan of `cleanset hints`: a look at each image, with its text if that is read."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import process_time

from cleanset.errors import CleansetError
from cleanset.planning.costs import Costs, measured_costs, total_size
from cleanset.planning.work import Count, Plan, Work
from cleanset.report.hints import CUSTOM, HintedPlace, Read, images_in, is_text_read, look_of, looking_processes
from cleanset.review.hints.hints import Measuring
from cleanset.review.hints.kinds import measured_hints
from cleanset.review.hints.ranked import ImageLook, hinted_images
from cleanset.review.hints.text import usual_text_files


def counting(place: str, text: bool | None, custom: Sequence[str] = ()) -> Count:
    """Counts the images in a place; nothing is written. Raises CleansetError as `hints` does."""
    hints = measured_hints(custom, CUSTOM)
    images = images_in(place)
    return _Hinted(images=images, reads_text=is_text_read(len(images.read), text), hints=hints).plan


@dataclass(frozen=True, kw_only=True)
class _Hinted:
    """The images of a request."""

    images: HintedPlace
    reads_text: bool
    hints: Measuring

    def plan(self) -> Plan:
        """One row."""
        images = self.images
        size = total_size([images.source / name for name in images.read])
        work = Work(name="hints", images=len(images.read), bytes_read=size, measure=self.measure)
        return Plan(name=str(images.source), works=[work])

    def measure(self) -> Costs:
        """The costs of looking at images and comparing them; the text of these is kept.

        To compare as many again takes little longer for each: most pairs are left out by an index.
        """
        kept = usual_text_files()
        looks = dict[str, ImageLook]()

        def look(reads: Sequence[Read]) -> None:
            for read in reads:
                found = look_of(read, kept=kept, reads_text=self.reads_text, hints=self.hints)
                if isinstance(found, str):
                    raise CleansetError(
                        f"{self.images.source}: an image cannot be read ({found}); expected whole images"
                    )
                looks[str(len(looks))] = found

        count = len(self.images.read)
        costs = measured_costs(look, [*self.images.read.values()], workers=looking_processes(count))
        hinted_images(looks, self.images.classes)
        begin = process_time()
        hinted_images(looks, self.images.classes)
        compared = (process_time() - begin) / len(looks)
        return Costs(start=costs.start, image=costs.image + compared)
