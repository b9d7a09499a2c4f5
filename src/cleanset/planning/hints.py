"""The plan of `cleanset hints`: a look at each image, with its text if that is read."""

from functools import partial

from cleanset.errors import CleansetError
from cleanset.kept_files import NOTHING_KEPT
from cleanset.planning.clock import machine_of, timed
from cleanset.planning.launch import seconds_of_code
from cleanset.planning.work import IMAGE_BYTES, Cost, Plan, PlannedWork, Work
from cleanset.progress import tracked
from cleanset.report.hints import images_in, is_text_read, look_of
from cleanset.scoring.devices import choose_devices

LOOKED_AT = 6
"""Images that are looked at to measure it; the text of one takes a second of all cores."""


def plan(place: str, text: bool | None) -> Plan:
    """The plan of the hints at the images in a place; nothing is written. Raises CleansetError as `hints` does."""
    images = images_in(place)
    reads = list(images.read.values())
    reads_text = is_text_read(len(reads), text)
    look = partial(look_of, kept=NOTHING_KEPT, reads_text=reads_text)
    (device,) = choose_devices("cpu")
    chosen = reads[:: max(1, len(reads) // LOOKED_AT)][:LOOKED_AT]
    # the first one reads what looks at it
    with timed(device) as first:
        look(chosen[0])
    with timed(device) as elapsed:
        for read in tracked(chosen, len(chosen), "measuring"):
            if isinstance(problem := look(read), str):
                raise CleansetError(f"{images.source}: an image cannot be read ({problem}); expected whole images")
    seconds = elapsed.seconds / len(chosen)
    start = seconds_of_code("import cleanset.report.hints") + max(0.0, first.seconds - seconds)
    work = Work(
        name="hints",
        images=len(reads),
        bound="at most" if reads_text else "exact",
        bytes_read=len(reads) * IMAGE_BYTES,
        tasks=len(reads),
    )
    notes = (
        ["Text that was read of these images before is not read again, which the estimate ignores."]
        if reads_text
        else []
    )
    planned = PlannedWork(work=work, cost=Cost(start=start, cores=len(reads) * seconds))
    return Plan(name=place, machine=machine_of([device]), works=[planned], notes=notes)
