import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from itertools import chain
from pathlib import Path

import numpy as np
import psutil
import pytest
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.images.codec import decode
from cleanset.images.preprocessing import RES256CROP224
from cleanset.scoring.decoding import PREFETCHED_BATCHES, PixelBatch, SharedBatches, in_threads, pixels_of
from cleanset.scoring.scorer import grouped
from tests.scoring.networks import SMALL, many
from tests.scoring.slow_images import SlowInOne
from tests.ten_images import id_of, jpeg, ten_images

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("count", "batch_size", "workers"), [(30, 2, 2), (10, 8, 3), (1, 4, 2)])
def test_processes_give_what_threads_give(count: int, batch_size: int, workers: int) -> None:
    """In order, in memory that is used again and again, the last batch filled up with zeros."""
    images = many(count)
    groups = list(grouped(list(images), batch_size))
    with SharedBatches(images.__getitem__, SMALL, batch_size, workers) as shared:
        for _ in range(2):  # the workers stay
            found = [PixelBatch(ids, pixels.copy()) for ids, pixels in shared.batches(groups)]
            expected = list(in_threads(groups, images.__getitem__, SMALL, batch_size, workers))
            assert [batch.image_ids for batch in found] == [batch.image_ids for batch in expected] == groups
            for ours, theirs in zip(found, expected, strict=True):
                assert np.array_equal(ours.pixels, theirs.pixels)
                for name, pixels in zip(ours.image_ids, ours.pixels, strict=False):
                    assert np.array_equal(pixels, SMALL(decode(images[name])))
    assert count > 2 * PREFETCHED_BATCHES or not found[-1].pixels[count % batch_size or batch_size :].any()


def test_processes_name_a_broken_image() -> None:
    images = ten_images() | {id_of(7): b"x"}
    with SharedBatches(images.__getitem__, SMALL, 2, 2) as shared:
        batches = shared.batches(grouped(list(images), 2))
        assert next(batches).image_ids == [id_of(1), id_of(2)]
        with pytest.raises(
            CleansetError, match=rf"^{id_of(7)}: cannot be read \(not a JPEG or PNG\); expected a whole"
        ):
            list(batches)


def test_a_process_that_is_killed_is_reported() -> None:
    images = many(40)
    with SharedBatches(images.__getitem__, SMALL, 2, 2) as shared:
        batches = shared.batches(grouped(list(images), 2))
        next(batches)
        process, _ = shared._workers[0]
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(CleansetError, match="decodes images ended with exit code -9, near ILSVRC2012_val_"):
            list(batches)


def test_a_process_that_is_killed_while_it_holds_the_lock_does_not_hold_up_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SharedBatches, "LOCK_SECONDS", 0.1)
    images = many(4)
    with SharedBatches(images.__getitem__, SMALL, 2, 2) as shared:
        shared._taken.get_lock().acquire()
        with pytest.raises(CleansetError, match="decodes images ended with exit code 1, near ILSVRC2012_val_00000001"):
            list(shared.batches(grouped(list(images), 2)))


@pytest.mark.long
def test_a_slow_process_takes_fewer_images(tmp_path: Path) -> None:
    names = [str(number) for number in range(64)]
    with SharedBatches(SlowInOne(tmp_path), SMALL, 64, 2) as shared:
        list(shared.batches([names]))
    slow = (tmp_path / "slow").read_text()
    done = {path.name: path.read_text().split() for path in tmp_path.iterdir() if path.name != "slow"}
    assert sorted(chain(*done.values()), key=int) == names
    # half of them, if the batch was divided beforehand
    assert len(done[slow]) < 20


@pytest.mark.long
def test_no_process_outlives_the_one_that_is_killed() -> None:
    program = """
import time

from cleanset.scoring.decoding import SharedBatches
from cleanset.images.preprocessing import RES256CROP224
if __name__ == "__main__":
    with SharedBatches({}.__getitem__, RES256CROP224, 2, 2):
        print("ready", flush=True)
        time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    # the server that forks, and both processes that decode, which it forks in the background
    children: list[psutil.Process] = []
    deadline = time.monotonic() + 60
    while len(children) < 3 and time.monotonic() < deadline:
        children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) >= 3
    process.kill()
    process.wait()
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == []


def test_groups_are_drawn_only_as_needed() -> None:
    images = many(40)
    drawn = []

    def groups() -> object:
        for group in grouped(list(images), 2):
            drawn.append(group)
            yield group

    with SharedBatches(images.__getitem__, SMALL, 2, 2) as shared:
        batches = shared.batches(groups())  # type: ignore[arg-type]
        for number in range(1, 4):
            next(batches)
            assert len(drawn) == PREFETCHED_BATCHES + 1 + number


@pytest.mark.parametrize("size", [(1, 65000), (65000, 1), (3, 9000)])
def test_an_elongated_image_is_refused_before_it_takes_gigabytes(size: tuple[int, int]) -> None:
    shorter, longer = sorted(size)
    message = (
        rf"^a: too elongated \({size[0]} x {size[1]} pixels, resized to .*{256 * longer // shorter}.*; expected at "
    )
    with pytest.raises(CleansetError, match=message):
        pixels_of("a", {"a": jpeg(Image.new("RGB", size))}.__getitem__, RES256CROP224)


def test_an_image_may_be_rather_elongated() -> None:
    assert pixels_of("a", {"a": jpeg(Image.new("RGB", (40, 9000)))}.__getitem__, RES256CROP224).shape == (3, 224, 224)


def test_processes_that_were_left_half_way_are_refused() -> None:
    """Their answers to the rest are still to come, and would be taken for those to other images."""
    images = ten_images()
    names = sorted(images)
    groups = [[name] for name in names]
    with SharedBatches(images.__getitem__, SMALL, 1, 1) as shared:
        assert [batch.image_ids for batch in shared.batches(groups)] == groups
        assert [batch.image_ids for batch in shared.batches(groups[:2])] == groups[:2]
        with closing(shared.batches(groups)) as batches:
            assert next(batches).image_ids == groups[0]
        with pytest.raises(CleansetError, match="the processes that decode images stopped halfway"):
            next(shared.batches(groups))
