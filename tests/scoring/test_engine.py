"""Devices, memory, shards: none of it shows in what comes out."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from cleanset.classes import imagenet
from cleanset.edition.params import Precision
from cleanset.errors import CleansetError
from cleanset.scoring import scorer as scoring
from cleanset.scoring.engine import Settings, open_pipelines
from cleanset.scoring.models import LoadedModel
from cleanset.scoring.scorer import WaitingTime
from cleanset.scoring.shards import Shards
from cleanset.tables import SCORES, read_table, write_table
from tests.scoring.networks import CPU, linear, many
from tests.scoring.sharded import score_shards
from tests.ten_images import id_of

pytestmark = pytest.mark.slow

IMAGES = many(53)


def written(
    folder: Path,
    model: LoadedModel | None = None,
    devices: int = 1,
    batch_size: int = 4,
    workers: int = 2,
    precision: Precision = "float64",
    images: dict[str, bytes] | None = None,
    notify: Callable[[str], None] = print,
) -> bytes:
    """The bytes of the table that a run leaves."""
    images = images or IMAGES
    shards = Shards(folder / "shards", "f", list(images), batch_size, classes=imagenet(), min_images=8)
    settings, model = Settings([CPU] * devices, precision, batch_size, workers), model or linear()
    with open_pipelines(images.__getitem__, model.preprocessing, settings) as pipelines:
        score_shards(model, pipelines, settings, shards, notify)
    write_table(folder / "table", shards.table(), SCORES, imagenet())
    shards.remove()
    assert [path.name for path in folder.iterdir()] == ["table"]
    return (folder / "table").read_bytes()


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return written(tmp_path_factory.mktemp("plain"))


@pytest.mark.parametrize("devices", [2, 3])
@pytest.mark.parametrize("batch_size", [1, 4, 7, 64])
def test_several_devices_and_any_batch_size(tmp_path: Path, plain: bytes, devices: int, batch_size: int) -> None:
    assert written(tmp_path, devices=devices, batch_size=batch_size, workers=3) == plain


def test_every_device_takes_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The devices wait for each other in their first batch: one alone would never end."""
    barrier = threading.Barrier(2, timeout=20)
    seen: set[int] = set()
    logits = scoring.Scorer._logits

    def meet(self: scoring.Scorer, pixels: torch.Tensor, count: int) -> torch.Tensor:
        if id(self) not in seen:
            seen.add(id(self))
            barrier.wait()
        return logits(self, pixels, count)

    monkeypatch.setattr(scoring.Scorer, "_logits", meet)
    written(tmp_path, devices=2)
    assert len(seen) == 2


@pytest.mark.parametrize(("most", "halves"), [(5, "4"), (3, "2"), (1, "1")])
def test_out_of_memory_halves_the_batch(tmp_path: Path, plain: bytes, most: int, halves: str) -> None:
    notices: list[str] = []
    assert written(tmp_path, linear(most), batch_size=8, workers=1, notify=notices.append) == plain
    assert notices[-1] == f"cpu: out of memory; continuing with {halves} images at a time, for the same result"
    assert len(notices) == {5: 1, 3: 2, 1: 3}[most]  # and never again


def test_out_of_memory_with_one_image(tmp_path: Path) -> None:
    with pytest.raises(CleansetError, match=r"^cpu: no memory for even one image at a time; expected a larger device"):
        written(tmp_path, linear(0))


def test_the_batch_is_padded_to_one_shape(tmp_path: Path) -> None:
    shapes: set[int] = set()

    class Watching(type(linear().network)):  # type: ignore[misc]
        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            shapes.add(len(pixels))
            return super().forward(pixels)  # type: ignore[no-any-return]

    model = LoadedModel(Watching().requires_grad_(False), linear().preprocessing, "", classes=1000)
    written(tmp_path, model, batch_size=4)
    assert shapes == {4}
    table = read_table(tmp_path / "table", SCORES, imagenet())
    assert table["image_id"].tolist() == list(IMAGES)  # no padding among them


@pytest.mark.parametrize("devices", [1, 2])
def test_a_broken_image_is_named_and_what_is_finished_stays(tmp_path: Path, plain: bytes, devices: int) -> None:
    broken = IMAGES | {id_of(40): b"\xff\xd8"}
    with pytest.raises(CleansetError, match=rf"^{id_of(40)}: cannot be read"):
        written(tmp_path, devices=devices, images=broken)
    finished = sorted(path.name for path in (tmp_path / "shards" / "f").iterdir())
    assert 1 <= len(finished) <= 6
    assert "00004.parquet" not in finished  # images 33 to 40
    assert written(tmp_path, devices=devices) == plain


def test_the_model_is_left_unchanged(tmp_path: Path) -> None:
    model = linear()
    written(tmp_path, model, precision="float64")
    assert {parameter.dtype for parameter in model.network.parameters()} == {torch.float32}


@pytest.mark.parametrize("precision", ["float64", "float32", "tf32", "bfloat16"])
def test_what_a_precision_switches_is_switched_back(precision: Precision) -> None:
    def switches() -> tuple[bool, ...]:
        cudnn = torch.backends.cudnn
        return (
            torch.backends.cuda.matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark, cudnn.deterministic,
            torch.are_deterministic_algorithms_enabled(),
        )  # fmt: skip

    before = switches()
    with scoring.arithmetic(precision):
        assert (
            switches()
            == {
                "float64": (False, False, False, True, True),
                "float32": (False, False, False, True, True),
                "tf32": (True, True, True, False, False),
                "bfloat16": (False, False, True, False, False),
            }[precision]
        )
    assert switches() == before


def test_shards_of_another_fingerprint_are_removed(tmp_path: Path) -> None:
    names = [id_of(number) for number in range(1, 21)]
    rows = pd.DataFrame({
        "image_id": names, "top5_class": [np.arange(5, dtype=np.int16)] * 20,
        "top5_probability": [np.full(5, 0.125, np.float32)] * 20, "log_odds": [-1.945910] * 20,
    })  # fmt: skip
    shards = Shards(tmp_path / "s", "one", names, batch_size=4, classes=imagenet(), min_images=8)
    assert shards.missing == [0, 1, 2]
    assert [list(shards.image_ids(number)) for number in (0, 2)] == [names[:8], names[16:]]
    shards.keep(0, rows[:8])
    shards.keep(2, rows[16:])
    again = Shards(tmp_path / "s", "one", names, 4, classes=imagenet(), min_images=8)
    assert again.missing == [1]
    assert [len(each) for each in again.finished()] == [8, 4]
    assert Shards(
        tmp_path / "s", "one", [*names[:4], "other", *names[5:]], 4, classes=imagenet(), min_images=8
    ).missing == [0, 1]
    (tmp_path / "s" / "one" / "00002.parquet").write_bytes(b"PAR1")  # cut off by a loss of power
    assert Shards(tmp_path / "s", "one", names, 4, classes=imagenet(), min_images=8).missing == [1, 2]
    assert Shards(tmp_path / "s", "two", names, 4, classes=imagenet(), min_images=8).missing == [0, 1, 2]
    assert list((tmp_path / "s").iterdir()) == []


def test_the_share_of_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(scoring, "perf_counter", lambda: now)
    waiting = WaitingTime()
    now = 101.0  # one second without work
    waiting.begin()
    now = 102.0
    waiting.begin()  # two computations overlap
    now = 103.0
    waiting.end()
    now = 104.0
    waiting.end()
    assert waiting.share() == 0.25
    now = 108.0  # four more without
    assert waiting.share() == 0.625


def test_the_bar_shows_images_per_second_and_waiting() -> None:
    program = (
        "from cleanset.plumbing.progress import rate_bar\n"
        "with rate_bar(80, 'score') as done: done(60, 0.25); done(20, 0.5)"
    )
    ours, theirs = os.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "140"}
    subprocess.run([sys.executable, "-c", program], stderr=theirs, env=environment, check=True)
    os.close(theirs)
    shown = os.read(ours, 2**16).decode()
    os.close(ours)
    assert "80/80" in shown
    assert re.search(r"[1-9][\d,]* images/s", shown)
    assert "50% of the time waiting for data" in shown
