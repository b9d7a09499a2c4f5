"""`kill -9` in the middle of the stage, and what the next run takes over."""

import time
from pathlib import Path

import pytest

from cleanset.edition import Edition
from cleanset.scoring.shards import Shards
from cleanset.stages import score
from cleanset.tables import INDEX, read_table, write_table
from scoring.editions import make_edition, start, write_params, write_weights

COUNT = 640
"""A shard of 512 pictures and a rest."""


def shard_files(edition: Edition) -> list[Path]:
    return sorted(edition.partial_scores("standard").glob("*/*.parquet"))


def taken_over(edition: Edition, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Run the stage to its end here; which shards it did not compute."""
    missing: list[int] = []

    class Watched(Shards):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments)  # type: ignore[arg-type]
            missing.extend(self.missing)

    monkeypatch.setattr(score, "Shards", Watched)
    score.run(edition, "standard")
    return [number for number in range(2) if number not in missing]


def test_kill_minus_nine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edition = make_edition(tmp_path, COUNT)
    process = start(edition)
    deadline = time.monotonic() + 200
    while not shard_files(edition):
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert process.stderr is not None
    process.stderr.close()
    names = [path.name for path in shard_files(edition)]
    assert names == ["00000.parquet"]
    assert not edition.scores("standard").exists()

    assert taken_over(edition, monkeypatch) == [0]
    assert not edition.partial_scores("standard").exists()
    continued = edition.scores("standard").read_bytes(), edition.scored_with("standard").read_bytes()

    assert taken_over(edition, monkeypatch) == []  # nothing is left over from before
    assert (edition.scores("standard").read_bytes(), edition.scored_with("standard").read_bytes()) == continued


def test_shards_of_other_weights_pictures_or_precision_are_not_taken(
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
    write_table(edition.index, read_table(edition.index, INDEX)[1:], INDEX)
    other_pictures = run()
    assert len({first, single, single_in_twos, other_weights, other_pictures}) == 5
