"""The plan of hints: its images, and the seconds of a look at some of them."""

from pathlib import Path
from time import monotonic

from PIL import Image

from cleanset.planning.hints import counting


def test_a_start_looks_at_images_for_as_long_as_it_takes(tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        Image.effect_noise((60, 40), 64).convert("RGB").save(tmp_path / name)
    count = counting(str(tmp_path), False)
    (work,) = count().works
    assert (work.images, work.part.images, work.bytes_read) == (2, 0, 268_000)
    begin = monotonic()
    work.start()
    (begun,) = count().works
    assert begun.part.images == 2
    assert 0 < begun.part.seconds <= monotonic() - begin
