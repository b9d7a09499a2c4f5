"""`kill -9` in the middle of the stage, and what the next run takes over."""

import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from cleanset.classes import imagenet
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.scoring import engine
from cleanset.scoring.shards import Shards
from cleanset.stages import score
from cleanset.tables import INDEX, read_table, write_table
from tests.scoring.editions import make_edition, write_params, write_weights
from tests.ten_images import FORK_SERVER

pytestmark = pytest.mark.slow

COUNT, SHARD = 24, 16
"""A shard of 16 images and a rest."""


class SmallShards(Shards):
    """Shards of few images."""

    def __init__(self, folder: Path, fingerprint: str, image_ids: Sequence[Any], batch_size: int, **rest: Any) -> None:
        super().__init__(folder, fingerprint, image_ids, batch_size, min_images=SHARD, **rest)


class KillingShards(SmallShards):
    """The first that is kept is the last thing that its process does."""

    def keep(self, number: int, table: pd.DataFrame) -> None:
        super().keep(number, table)
        os.kill(os.getpid(), signal.SIGKILL)


def score_until_killed(folder: Path) -> None:
    pytest.MonkeyPatch().setattr(engine, "Shards", KillingShards)
    score.run(Edition(folder), "standard")


def taken_over(edition: Edition, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Run the stage to its end here; which shards it did not compute."""
    missing: list[int] = []

    class Watched(SmallShards):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            missing.extend(self.missing)

    monkeypatch.setattr(engine, "Shards", Watched)
    score.run(edition, "standard")
    return [number for number in range(2) if number not in missing]


def test_kill_minus_nine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edition = make_edition(tmp_path, COUNT)
    process = FORK_SERVER.Process(target=score_until_killed, args=(tmp_path,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert [path.name for path in edition.partial_scores("standard").glob("*/*")] == ["00000.parquet"]
    assert not edition.scores("standard").exists()

    assert taken_over(edition, monkeypatch) == [0]
    assert not edition.partial_scores("standard").exists()
    continued = edition.scores("standard").read_bytes(), edition.scored_with("standard").read_bytes()

    assert taken_over(edition, monkeypatch) == []  # nothing is left over from before
    assert (edition.scores("standard").read_bytes(), edition.scored_with("standard").read_bytes()) == continued


@pytest.mark.long
def test_shards_of_other_weights_images_or_precision_are_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edition = make_edition(tmp_path, 8)
    monkeypatch.setattr(Shards, "remove", lambda self: None)  # as if killed at the very end

    def run() -> str:
        score.run(edition, "standard")
        (folder,) = edition.partial_scores("standard").iterdir()
        return folder.name

    first = run()
    assert run() == first
    write_params(tmp_path, batch_size=2)
    assert run() == first  # it does not show in float64
    write_params(tmp_path, precision="float32")
    single = run()
    write_params(tmp_path, precision="float32", batch_size=2)
    single_in_twos = run()
    write_weights(tmp_path, seed=2)
    write_params(tmp_path)
    other_weights = run()
    write_table(edition.index, read_table(edition.index, INDEX, imagenet())[1:], INDEX, imagenet())
    other_images = run()
    assert len({first, single, single_in_twos, other_weights, other_images}) == 5


def test_shards_of_other_code_are_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The network's code changes where its weights do not: also in what its module imports."""
    edition = make_edition(tmp_path, 3)
    params = yaml.safe_load(edition.params_yaml.read_text())
    params["models"]["standard"] = {"source": "module", "name": "of_edition:make"}
    edition.params_yaml.write_text(yaml.safe_dump(params))
    (tmp_path / "of_edition.py").write_text(
        "import torch\nfrom beside_it import SCALE\n"
        "class Sized(torch.nn.Module):\n"
        "    def forward(self, pixels):\n"
        "        return pixels.mean(dim=(1, 2, 3))[:, None] * torch.arange(1000).to(pixels) * SCALE\n"
        "def make():\n    return Sized(), 'timm-bilinear-32-32'\n"
    )
    monkeypatch.setattr(Shards, "remove", lambda self: None)  # as if killed at the very end
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def run(scale: float) -> str:
        (tmp_path / "beside_it.py").write_text(f"SCALE = {scale}\n")
        for name in ("of_edition", "beside_it"):
            sys.modules.pop(name, None)
        score.run(edition, "standard")
        (folder,) = edition.partial_scores("standard").iterdir()
        return folder.name

    first = run(1.0)
    assert run(1.0) == first
    assert run(2.0) != first
    for name in ("of_edition", "beside_it"):
        del sys.modules[name]


@pytest.mark.parametrize("obstacle", ["file", "link", "notes.txt", "mine"])
def test_what_is_in_the_way_of_the_shards_is_named_and_stays(tmp_path: Path, obstacle: str) -> None:
    edition = make_edition(tmp_path, 3)
    folder = edition.partial_scores("standard")
    folder.parent.mkdir(parents=True)
    path = folder if obstacle in ("file", "link") else folder / obstacle
    if obstacle == "link":
        path.symlink_to("elsewhere")
    elif obstacle == "mine":  # a folder with a shard and something else
        path.mkdir(parents=True)
        (path / "00000.parquet").touch()
        (path / "notes.txt").write_text("mine")
    else:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    before = sorted(edition.folder.rglob("*"))
    with pytest.raises(CleansetError, match=rf"^{re.escape(str(path))}: .*; expected .*: (remove it|move it away)"):
        score.run(edition, "standard")
    assert sorted(edition.folder.rglob("*")) == before


def test_shards_of_another_run_are_removed(tmp_path: Path) -> None:
    """Also those that a killed run has not finished writing."""
    edition = make_edition(tmp_path, 3)
    stale = edition.partial_scores("standard") / "0123456789abcdef"
    stale.mkdir(parents=True)
    for name in ("00000.parquet", ".00001.parquet.abcd1234.partial"):
        (stale / name).touch()
    score.run(edition, "standard")
    assert sorted(path.name for path in edition.scores("standard").parent.iterdir()) == [
        "standard.json", "standard.parquet",
    ]  # fmt: skip


def test_what_a_kill_left_of_a_shard_is_removed(tmp_path: Path) -> None:
    """The workspace of a writer that no longer lives."""
    (left := tmp_path / "f" / ".00000.parquet.abcd1234.partial").mkdir(parents=True)
    for name in ("lock", "new"):
        (left / name).write_bytes(b"half")
    assert Shards(tmp_path, "f", ["a"], batch_size=4, classes=imagenet()).missing == [0]
    assert not left.exists()
