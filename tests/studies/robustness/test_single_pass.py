"""One pass of several models over changed images: each image made once, and the answers of each model alone."""

import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from cleanset.classes import imagenet
from cleanset.errors import CleansetError
from cleanset.scoring.computation import Tasks
from cleanset.scoring.engine import Settings, open_pipelines
from cleanset.scoring.logits import top5
from cleanset.scoring.models import LoadedModel
from cleanset.scoring.shards import Shards
from cleanset.studies.robustness.digests import NAMED_DIGESTS, TakenDigests, digests_in
from cleanset.studies.robustness.images import ChangeName
from cleanset.studies.robustness.one_pass import ModelInPass, OnePass, PassTask, PassWorker, squares
from cleanset.tables import SCORES, Table
from tests.scoring.networks import CPU, Linear, linear
from tests.scoring.sharded import score_shards

pytestmark = pytest.mark.slow

NAMES = [ChangeName(f"{number:02}.png", "fog", 1) for number in range(53)]
COLUMNS = {name: NAMED_DIGESTS.columns[name] for name in ChangeName._fields} | SCORES.columns
COLUMNS.pop("image_id")
TABLE = Table(None, key=ChangeName._fields, **COLUMNS)
"""The scores by changed image."""
ROW = np.arange(224)


@dataclass(frozen=True)
class Drawn:
    """Makes an image by its name in a worker process, and writes the name into a file."""

    log: Path
    broken: str = ""
    held: Path | None = None
    """While it is there, images after the first shard wait."""

    def __call__(self, name: ChangeName) -> Image.Image:
        while self.held is not None and self.held.exists() and name not in NAMES[:8]:
            time.sleep(0.01)
        if str(name) == self.broken:
            raise CleansetError(f"{name}: cannot be made")
        with self.log.open("a") as file:
            file.write(f"{name}\n")
        return Image.fromarray(drawn(name))

    def made(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


def drawn(name: ChangeName) -> np.ndarray:
    number = int(name.file[:2])
    values = (ROW[:, None, None] * (number + 1) + ROW[None, :, None] * 3 + np.arange(3) * 40 * number) % 251
    return values.astype(np.uint8)


def sized(side: int, seed: int = 4) -> LoadedModel:
    model = linear()
    torch.manual_seed(seed)
    model.network.weight.data = torch.randn(1000, 48)
    return replace(model, preprocessing=squares(side))


def settings(devices: int = 1, batch_size: int = 4) -> Settings:
    return Settings([CPU] * devices, "float64", batch_size, devices)


def shards_in(folder: Path, batch_size: int = 4, only: Sequence[ChangeName] | None = None) -> Shards:
    return Shards(folder, "f", NAMES, batch_size, classes=imagenet(), min_images=8, table=TABLE, only=only)


def lacking(model: LoadedModel, shards: Shards) -> ModelInPass:
    return ModelInPass(model=model, read_off=top5, shards=shards)


def alone(folder: Path, model: LoadedModel, log: Path) -> pd.DataFrame:
    """The answers of one model by the engine that scores the images of archives."""
    shards = shards_in(folder)
    with open_pipelines(Drawn(log), model.preprocessing, settings()) as pipelines:
        score_shards(model, pipelines, settings(), shards)
    return shards.table()


@pytest.mark.long
def test_each_image_is_made_once(tmp_path: Path) -> None:
    """By two devices. The answers are those of each model alone, bit for bit; the digests those of the pixels."""
    networks = {"small": sized(32), "large": sized(224, 5), "again": sized(32, 6)}
    models = {name: lacking(model, shards_in(tmp_path / name, 3)) for name, model in networks.items()}
    taken = Shards(tmp_path / "taken", "f", NAMES, 20, classes=imagenet(), min_images=20, table=NAMED_DIGESTS)
    images, counted, digests = Drawn(tmp_path / "log"), list[int](), TakenDigests(taken)
    problems = OnePass(
        models=models,
        images=images,
        settings=settings(2, 3),
        on_progress=lambda count, _: counted.append(count),
        digests=digests,
    ).answer()
    assert problems == {}
    assert sorted(images.made()) == list(map(str, NAMES))
    assert sum(counted) == 3 * len(NAMES)
    for name, model in networks.items():
        expected = alone(tmp_path / f"{name} alone", model, tmp_path / "others")
        pd.testing.assert_frame_equal(models[name].shards.table(), expected, check_exact=True)
    found = digests_in(taken.table())
    assert found == {name: hashlib.sha256(drawn(name).tobytes()).hexdigest() for name in NAMES}


def test_a_model_is_shown_what_it_lacks(tmp_path: Path) -> None:
    """Shards that are finished are left alone; a model of few images gets these."""
    whole = alone(tmp_path / "whole", sized(32), tmp_path / "others")
    few = NAMES[3:11] + NAMES[50:]
    begun = shards_in(tmp_path / "begun")
    for number in (0, 2):
        begun.keep(number, whole[whole["file"].isin([name.file for name in begun.image_ids(number)])])
    models = {
        "begun": lacking(sized(32), shards_in(tmp_path / "begun")),
        "few": lacking(sized(32), shards_in(tmp_path / "few", only=few)),
    }
    assert models["few"].shards.missing == [0, 1, 6]
    assert models["few"].shards.total_images() == len(few)
    images = Drawn(tmp_path / "log")
    assert OnePass(models=models, images=images, settings=settings()).answer() == {}
    assert sorted(images.made()) == sorted(map(str, {*NAMES[8:16], *NAMES[24:], *few}))
    pd.testing.assert_frame_equal(models["begun"].shards.table(), whole, check_exact=True)
    rows = whole[whole["file"].isin([name.file for name in few])].reset_index(drop=True)
    pd.testing.assert_frame_equal(models["few"].shards.table(), rows, check_exact=True)
    assert shards_in(tmp_path / "few", only=few).missing == []


class Infinite(Linear):
    """An infinite logit for the last images."""

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        logits = super().forward(pixels)
        return logits / 0 if sum(self.seen) > 30 else logits


def test_a_model_that_fails_stops_no_other(tmp_path: Path) -> None:
    broken = LoadedModel(Infinite().requires_grad_(False), squares(32), "0" * 64, classes=1000)
    models = {
        "broken": lacking(broken, shards_in(tmp_path / "broken")),
        "whole": lacking(sized(32), shards_in(tmp_path / "whole")),
    }
    problems = OnePass(models=models, images=Drawn(tmp_path / "log"), settings=settings()).answer()
    assert list(problems) == ["broken"]
    assert "a logit is NaN or infinite" in str(problems["broken"])
    assert shards_in(tmp_path / "whole").missing == []
    assert shards_in(tmp_path / "broken").missing == [3, 4, 5, 6]


@pytest.mark.long
def test_an_image_that_cannot_be_made(tmp_path: Path) -> None:
    models = {"one": lacking(sized(32), shards_in(tmp_path / "one"))}
    with pytest.raises(CleansetError, match=r"^30\.png fog 01: cannot be made$"):
        OnePass(models=models, images=Drawn(tmp_path / "log", "30.png fog 01"), settings=settings()).answer()


@pytest.mark.parametrize("is_stopped", [False, True])
def test_what_is_ended_early_shows_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_stopped: bool
) -> None:
    """The images of the next shard are in the making then; nothing runs afterwards, and the shard after is not made."""
    before = {*threading.enumerate(), *active_children()}
    held = tmp_path / "held"
    held.touch()
    model = lacking(sized(32), shards_in(tmp_path / "one"))
    whole = OnePass(models={"one": model}, images=Drawn(tmp_path / "log", held=held), settings=settings())
    worker = PassWorker(models=whole.models, images=whole.images, settings=settings(), takes_digests=True)
    blocks = list[str]()
    monkeypatch.setattr(PassWorker, "_block", recorded(blocks))
    with closing(worker.results(Tasks(whole.tasks()))) as results:
        number, shown = next(results)
        assert (number, list(shown.digests)) == (0, list(model.shards.image_ids(0)))
        # only after the end: closing waits for the images in the making
        threading.Timer(0.5, held.unlink).start()
        if is_stopped:
            worker.stop()
            assert list(results) == []
    assert blocks == ["0"]
    assert not {*threading.enumerate(), *active_children()} - before


def recorded(numbers: list[str]) -> Callable[..., object]:
    """PassWorker._block, which notes the number of each shard."""
    prepare = PassWorker._block

    def noting(worker: PassWorker, task: PassTask, *others: Any) -> object:
        numbers.append(str(task.number))
        return prepare(worker, task, *others)

    return noting
