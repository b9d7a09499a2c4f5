"""Linear costs on a clock of the test's own, and sizes of files."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cleanset.planning import costs as of_costs
from cleanset.planning.costs import MAX_SHARE, Costs, measured_costs, total_size


@dataclass
class Computation:
    """Takes some seconds once, and the same for each image, on a clock of its own."""

    start: float
    image: float
    now: float = 0.0
    computed: list[int] = field(default_factory=list)

    def __call__(self, images: Sequence[int]) -> None:
        self.now += (0 if self.computed else self.start) + self.image * len(images)
        self.computed += images

    def costs(self, images: int, *, batch: int = 1, workers: int = 1) -> Costs:
        return measured_costs(self, range(images), batch=batch, workers=workers, clock=lambda: self.now)


@pytest.mark.parametrize(("images", "batch"), [(60, 1), (4_000, 1), (160, 4)])
@pytest.mark.parametrize("seconds", [0.001, 0.2])
def test_linear_costs(images: int, batch: int, seconds: float) -> None:
    """They are found with a tenth of the time, beside the start, or less; each image is computed once at most."""
    asked = Computation(start=5.0, image=seconds)
    found = asked.costs(images, batch=batch)
    assert found.start == pytest.approx(5.0)
    assert found.image == pytest.approx(seconds)
    assert asked.now - 5 <= MAX_SHARE * (5 + seconds * images) + 2 * batch * seconds
    assert len(asked.computed) == len(set(asked.computed))


def test_workers_share_the_images_but_not_the_start() -> None:
    found = Computation(start=2.0, image=0.1).costs(100, workers=4)
    assert found.start == pytest.approx(2.0)
    assert found.image == pytest.approx(0.025)


def test_a_sample_is_spread_and_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_costs, "MAX_SECONDS", 3.0)
    asked = Computation(start=0.0, image=1.0)
    asked.costs(1_000)
    assert len(asked.computed) <= 5
    assert max(asked.computed) > 500


@pytest.mark.parametrize(("images", "computed"), [(1, 1), (8, 1), (40, 4)])
def test_long_parts_of_a_few(images: int, computed: int) -> None:
    """Of a few groups that take minutes one is computed."""
    asked = Computation(start=0.0, image=60.0)
    found = asked.costs(images)
    assert found.start + found.image * images == pytest.approx(60 * images)
    assert len(asked.computed) <= computed


def test_sizes_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = []
    for number in range(20):
        paths.append(tmp_path / str(number))
        paths[-1].write_bytes(os.urandom(100 + number % 2))
    assert total_size(paths) == 20 * 100 + 10
    assert total_size([*paths, tmp_path / "missing"]) == 20 * 100 + 10
    monkeypatch.setattr(of_costs, "MAX_FILES", 5)
    assert 2_000 <= total_size(paths) <= 2_020
    assert total_size([]) == 0
