"""The plan of hints: its images with their sizes, and the costs of a look at some of them."""

from pathlib import Path

from PIL import Image

from cleanset.planning.hints import counting
from cleanset.planning.work import measured_plan


def test_sizes_and_seconds_of_images(tmp_path: Path) -> None:
    for name in ("a.png", "b.png", "c.png"):
        Image.effect_noise((60, 40), 64).convert("RGB").save(tmp_path / name)
    count = counting(str(tmp_path), False)
    (work,) = count().works
    assert (work.images, work.bytes_read) == (3, sum(each.stat().st_size for each in tmp_path.iterdir()))
    (found,) = measured_plan(count).works
    assert found.costs is not None
    assert found.costs.start > 0
    assert 0 < found.costs.image < 1
