"""The replay of SCOOTER's procedure: its inputs by hand, and the whole of it."""

import csv
import random
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import yaml

from cleanset.classes import imagenet
from cleanset.review.store import Votes, read_reviews
from cleanset.review.verdicts import Clean, Cropped, Rejected
from replay import SHORT, differences, numbers, out_of_order
from tests.checkouts import Checkout

A, B, C, D = (f"ILSVRC2012_val_{number:08d}" for number in (1, 2, 3, 4))


def test_out_of_order() -> None:
    lists = {5: [A, B, C, D]}
    assert list(out_of_order(lists, {(5, A), (5, B)})) == []
    assert list(out_of_order(lists, {(5, A), (5, D)})) == [(5, D, B)]
    assert list(out_of_order(lists, {(5, B), (5, C), (7, A)})) == [(5, B, A), (5, C, A)]


@pytest.fixture(scope="module")
def votes(repository: Path) -> Votes:
    return read_reviews(repository / "imagenet" / "reviews", imagenet())


def by_hand(votes: Votes, lists: pd.DataFrame) -> pd.DataFrame:
    """The set by the published rule, without any stage: by rank, then the extras; the first three that are kept."""
    columns = (lists[name].tolist() for name in ("class_index", "image_id", "rank"))
    order = {(class_index, name): rank for class_index, name, rank in zip(*columns, strict=True)}
    kept: dict[int, list[tuple[int, str, bool]]] = {}
    for (class_index, name), by_reviewer in votes.items():
        (vote,) = by_reviewer.values()
        if isinstance(vote.review.verdict, Clean | Cropped):
            place = order.get((class_index, name), 6)
            kept.setdefault(class_index, []).append((place, name, isinstance(vote.review.verdict, Cropped)))
    rows = [(index, *each) for index, found in kept.items() for each in sorted(found)[:3]]
    return pd.DataFrame(rows, columns=["class_index", "place", "image_id", "box_unknown"]).assign(crop=None)


def lists_of(repository: Path) -> pd.DataFrame:
    table = pd.read_csv(repository / "imagenet" / "published" / "top5.csv")
    return table[table["model"] == "norm_robust"]


def test_any_changed_verdict_is_found(votes: Votes, repository: Path) -> None:
    """Ten verdicts changed, one at a time: also those that change no number."""
    selection = by_hand(votes, lists_of(repository))
    assert differences(numbers(selection, votes)) == []
    drawn = random.Random(0).sample(sorted(votes), 10)
    for key in drawn:
        ((name, vote),) = votes[key].items()
        is_clean = isinstance(vote.review.verdict, Clean)
        changed = replace(vote.review, verdict=Rejected("other") if is_clean else Clean())
        altered = dict(votes) | {key: {name: type(vote)(vote.wnid, vote.image_id, changed, vote.where)}}
        found = differences(numbers(by_hand(altered, lists_of(repository)), altered))
        assert any(line.startswith("verdicts, SHA-256: ") for line in found)


@pytest.fixture(scope="module")
def replayed(pristine: Checkout, tmp_path_factory: pytest.TempPathFactory) -> tuple[Checkout, str]:
    """A clone in which the replay has run, and what it printed; what others have reviewed there changes nothing."""
    clone = pristine.clone(tmp_path_factory.mktemp("replay") / "cleanset")
    reviews = clone.folder / "imagenet" / "reviews"
    first = sorted((reviews / "scooter").glob("*.yaml"))[0]
    (reviews / "alice").mkdir()
    text = first.read_text().replace("verdict: clean\n", "verdict: reject\n    reason: blur\n", 1)
    (reviews / "alice" / first.name).write_text(text)
    return clone, clone.run("python", "bench/replay.py").stdout


def test_the_published_set_is_reproduced(replayed: tuple[Checkout, str], votes: Votes) -> None:
    clone, printed = replayed
    lines = [line.split() for line in printed.splitlines()]
    assert lines[1:5] == [
        ["images", "2,966", "2,966"],
        ["classes", "with", "images", "995", "995"],
        ["classes", "with", "three", "982", "982"],
        ["cropped", "images", "109", "109"],
    ]
    assert lines[5:22] == [["class", str(index), str(count), str(count)] for index, count in SHORT.items()]
    assert printed.endswith("The published set is reproduced.\n")
    rows = list(csv.DictReader((clone.folder / "build/published/selection.csv").open()))
    mine = [row for row in rows if row["model"] == "norm_robust"]
    expected = by_hand(votes, lists_of(clone.folder))
    assert {(int(row["class_index"]), row["image_id"], row["cropped"] == "yes") for row in mine} == set(
        expected[["class_index", "image_id", "box_unknown"]].itertuples(index=False, name=None)
    )
    assert (clone.folder / "build/published/crops_last.csv").read_text().count("asked") == 62


def test_the_page_has_the_numbers(replayed: tuple[Checkout, str]) -> None:
    clone, printed = replayed
    page = (clone.folder / "docs" / "published_lists.md").read_text()
    cells = {tuple(cell.strip(" `") for cell in line.split("|")[1:-1]) for line in page.splitlines() if "|" in line}
    left = [line.rsplit(maxsplit=3) for line in printed.split("at most")[1].splitlines()[1:5]]
    assert [name for name, *_ in left] == ["standard", "norm_robust", "corruption_robust", "all models"]
    assert {tuple(row) for row in left} <= cells
    assert {("images", "2,966", "2,966"), ("cropped images", "109", "109")} <= cells
    assert "62 unreviewed images in 45 classes" in page
    assert "unreviewed images asked for                 62 in 45 classes" in printed


@pytest.mark.exhaustive
def test_a_verdict_changed_by_hand(replayed: tuple[Checkout, str]) -> None:
    """The surest tench is rejected: its class has another image, and the command fails."""
    clone, _ = replayed
    path = next(iter(sorted((clone.folder / "imagenet/reviews/scooter").glob("*.yaml"))))
    text = path.read_text()
    content = yaml.safe_load(text)
    first = next(iter(content[path.stem]))
    assert content[path.stem][first]["verdict"] == "clean"
    path.write_text(
        text.replace(f"{first}:\n    verdict: clean\n", f"{first}:\n    verdict: reject\n    reason: blur\n", 1)
    )
    done = clone.run("python", "bench/replay.py", check=False)
    path.write_text(text)
    assert done.returncode == 1
    assert "differs: images: 2965; published 2966\n" in done.stdout
    assert "differs: verdicts, SHA-256: " in done.stdout
    assert done.stdout.endswith("The published set is not reproduced.\n")


@pytest.mark.long
def test_a_folder_with_other_files(replayed: tuple[Checkout, str], tmp_path: Path) -> None:
    clone, _ = replayed
    (tmp_path / "thesis.tex").touch()
    done = clone.run("python", "bench/replay.py", str(tmp_path), check=False)
    assert (done.returncode, done.stderr) == (
        1, f"error: {tmp_path}: there is thesis.tex; expected a new or empty folder\n",
    )  # fmt: skip
