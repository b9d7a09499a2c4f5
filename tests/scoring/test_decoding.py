import os
import signal
import subprocess
import sys

import numpy as np
import psutil
import pytest

from cleanset.errors import CleansetError
from cleanset.scoring.decoding import AHEAD, Batch, SharedBatches, in_threads
from cleanset.scoring.scorer import grouped
from inputs.made import picture_id, ten_pictures
from scoring.networks import SMALL, many


@pytest.mark.parametrize(("count", "batch_size", "workers"), [(30, 2, 2), (10, 8, 3), (1, 4, 2)])
def test_processes_give_what_threads_give(count: int, batch_size: int, workers: int) -> None:
    """In order, in memory that is used again and again, the last batch filled up with zeros."""
    pictures = many(count)
    groups = list(grouped(list(pictures), batch_size))
    with SharedBatches(pictures.__getitem__, SMALL, batch_size, workers) as shared:
        for _ in range(2):  # the workers stay
            found = [Batch(ids, pixels.copy()) for ids, pixels in shared.batches(groups)]
            expected = list(in_threads(groups, pictures.__getitem__, SMALL, batch_size, workers))
            assert [batch.image_ids for batch in found] == [batch.image_ids for batch in expected] == groups
            for ours, theirs in zip(found, expected, strict=True):
                assert np.array_equal(ours.pixels, theirs.pixels)
    assert count > 2 * AHEAD or not found[-1].pixels[count % batch_size or batch_size :].any()


def test_processes_name_a_broken_picture() -> None:
    pictures = ten_pictures() | {picture_id(7): b"x"}
    with SharedBatches(pictures.__getitem__, SMALL, 2, 2) as shared:
        batches = shared.batches(grouped(list(pictures), 2))
        assert next(batches).image_ids == [picture_id(1), picture_id(2)]
        with pytest.raises(CleansetError, match=rf"^{picture_id(7)}: cannot be read \(not a JPEG\); expected a whole"):
            list(batches)


def test_a_process_that_is_killed_is_reported() -> None:
    pictures = many(40)
    with SharedBatches(pictures.__getitem__, SMALL, 2, 2) as shared:
        batches = shared.batches(grouped(list(pictures), 2))
        next(batches)
        process, _ = shared._workers[0]
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(CleansetError, match="decodes pictures ended with exit code -9, near ILSVRC2012_val_"):
            list(batches)


def test_no_process_outlives_the_one_that_is_killed() -> None:
    program = """
from cleanset.scoring.decoding import SharedBatches
from cleanset.images import RES256CROP224
if __name__ == "__main__":
    with SharedBatches({}.__getitem__, RES256CROP224, 2, 2):
        print("ready", flush=True)
        time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) >= 3
    process.kill()
    process.wait()
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == []


def test_groups_are_drawn_only_as_they_are_needed() -> None:
    pictures = many(40)
    drawn = []

    def groups() -> object:
        for group in grouped(list(pictures), 2):
            drawn.append(group)
            yield group

    with SharedBatches(pictures.__getitem__, SMALL, 2, 2) as shared:
        batches = shared.batches(groups())  # type: ignore[arg-type]
        for number in range(1, 4):
            next(batches)
            assert len(drawn) == AHEAD + 1 + number
