"""What reading images costs here, on the images themselves or on a drawn one in their place."""

import io
from collections.abc import Callable, Hashable, Sequence

from PIL import Image

from cleanset.drawing.folders import photograph
from cleanset.images.codec import Source, inspect
from cleanset.images.preprocessing import Preprocessing
from cleanset.planning.clock import timed
from cleanset.scoring.decoding import pixels_of
from cleanset.scoring.devices import Device

READ_IMAGES = 24
"""Images that are read to measure it."""
TYPICAL_SIZE = (500, 375)
"""Width and height, in pixels, of most images of ILSVRC2012."""


def drawn_image(_: Hashable) -> bytes:
    """A drawn JPEG of TYPICAL_SIZE."""
    buffer = io.BytesIO()
    photograph("goldfish", 1).resize(TYPICAL_SIZE, Image.Resampling.BICUBIC).save(buffer, "JPEG", quality=95)
    return buffer.getvalue()


def seconds_of_reading(read: Source, names: Sequence[Hashable], preprocessing: Preprocessing, device: Device) -> float:
    """Mean seconds of a core for an image: read, checked, decoded, resized and cropped."""
    return _mean_seconds(lambda name: pixels_of(name, read, preprocessing), names, device)


def seconds_of_inspecting(read: Callable[[str], bytes], names: Sequence[str], device: Device) -> float:
    """Mean seconds of a core for an image in stage preprocess: read, and decoded to its end."""
    return _mean_seconds(lambda name: inspect(read(str(name)), ("JPEG", "PNG", "WEBP")), names, device)


def _mean_seconds(call: Callable[[Hashable], object], names: Sequence[Hashable], device: Device) -> float:
    step = max(1, len(names) // READ_IMAGES)
    chosen = names[::step][:READ_IMAGES]
    if not chosen:
        return 0.0
    # the first image imports what decodes it
    call(chosen[0])
    with timed(device) as elapsed:
        for name in chosen:
            call(name)
    return elapsed.seconds / len(chosen)
