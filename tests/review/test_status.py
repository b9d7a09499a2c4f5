"""`cleanset review status` as a person runs it, and how classes are counted."""

import json
from pathlib import Path

import pytest
from rich.console import Console

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.review import status as review_status
from cleanset.review.status import ALL_MODELS
from cleanset.tables import CROP_SCORES
from tests.evaluation.compare.command import cleanset, says
from tests.stages.test_stages import PARAMS, edition_in, put, sha, val
from tests.ten_images import Made


@pytest.fixture
def edition(tmp_path: Path) -> Edition:
    """The tiny edition of the stages' tests: three models, two classes, two images each."""
    return edition_in(tmp_path / "edition")


TABLE = """
 classes             settled   open   short   conflict   at least   at most
 ──────────────────────────────────────────────────────────────────────────
 standard                  1      1       0          0          1         1
 norm_robust               0      1       1          0          1         2
 corruption_robust         0      1       1          0          1         1

 all models                0      2       0          0          2         3

"""
NOTE = "At least and at most: images still to be reviewed, if all are clean and if none"
TENCH, GOLDFISH = "n01440764", "n01443537"


def lines(text: str) -> str:
    """Without the spaces at the ends of lines."""
    return "".join(line.rstrip() + "\n" for line in text.splitlines())


def test_the_table(edition: Edition) -> None:
    """Model norm_robust needs image 3 of the tenches, and image 6, a conflict, if 3 is not clean."""
    code, shown, errors = says(cleanset("review", "status", cwd=edition.folder))
    assert (code, lines(shown), errors) == (0, f"{TABLE}{NOTE}\ncan be used.\n", "")


def test_another_folder_and_a_wider_terminal(edition: Edition, tmp_path: Path) -> None:
    elsewhere = cleanset("review", "status", "--edition", "edition", cwd=tmp_path)
    assert lines(elsewhere.stdout).startswith(TABLE)
    console = Console(width=120)
    with console.capture() as shown:
        console.print(review_status.as_table(review_status.run(edition)))
    assert lines(shown.get()) == f"{TABLE}{NOTE} can be used.\n"


def test_json(edition: Edition) -> None:
    code, shown, errors = says(cleanset("review", "status", "--json", cwd=edition.folder))
    assert (code, errors) == (0, "")
    assert json.loads(shown) == {
        "images_per_class": 2,
        "all_models": {
            "settled": [], "open": [TENCH, GOLDFISH], "short": [], "conflict": [],
                "at_least": 2, "at_most": 3, "boxes": 0,
        },
        "models": {
            "standard": {
                "settled": [TENCH], "open": [GOLDFISH], "short": [], "conflict": [],
                "at_least": 1, "at_most": 1, "boxes": 0,
            },
            "norm_robust": {
                "settled": [], "open": [TENCH], "short": [GOLDFISH], "conflict": [],
                "at_least": 1, "at_most": 2, "boxes": 0,
            },
            "corruption_robust": {
                "settled": [], "open": [TENCH], "short": [GOLDFISH], "conflict": [],
                "at_least": 1, "at_most": 1, "boxes": 0,
            },
        },
    }  # fmt: skip


def review(edition: Edition, reviewer: str, wnid: str, **images: str) -> None:
    """Replace a reviewer's file of a class; `p3="verdict: clean"` sets image 3."""
    path = edition.reviews / reviewer / f"{wnid}.yaml"
    entries = "".join(
        f"  {val(int(name[1:]))}: {{{fields}, sha256: {sha(int(name[1:]))!r}}}\n" for name, fields in images.items()
    )
    path.write_text(f"{wnid}:\n{entries}")


def test_conflicts_are_named_and_so_is_nothing_left(edition: Edition) -> None:
    reject = "verdict: reject, reason: blur"
    review(edition, "ann", GOLDFISH, p5="verdict: clean", p8="verdict: clean", p6=reject)
    review(edition, "ann", TENCH, p1="verdict: clean", p2=reject, p3="verdict: clean", p4=reject)
    assert "Nothing is left to be reviewed." in cleanset("review", "status", cwd=edition.folder).stdout
    review(edition, "bob", TENCH, p3=reject)
    done = cleanset("review", "status", cwd=edition.folder)
    assert "Conflict, for the board: n01440764." in done.stdout
    found = review_status.run(edition).progress
    assert found["norm_robust"].by_state == {"settled": [1], "open": [], "short": [], "conflict": [0]}
    assert found["corruption_robust"].by_state == {"settled": [], "open": [], "short": [1], "conflict": [0]}
    assert found[ALL_MODELS].by_state == {"settled": [], "open": [], "short": [1], "conflict": [0]}
    assert "Short: all candidates are reviewed, but fewer than 2 can be used." in done.stdout


def test_boxes_to_be_drawn(edition: Edition) -> None:
    """Image 2 of the tenches is to be cropped: each model needs it, or it and others."""
    path = edition.reviews / "ann" / f"{TENCH}.yaml"
    path.write_text(path.read_text().replace("crop: [0, 0, 40, 30]", "crop: unknown"))
    found = review_status.run(edition)
    assert {role: progress.boxes for role, progress in found.progress.items()} == {
        "standard": 1, "norm_robust": 1, "corruption_robust": 1, ALL_MODELS: 1,
    }  # fmt: skip
    note = "1 of these only lack a crop box: standard 1, norm_robust 1, corruption_robust 1."
    assert note in " ".join(cleanset("review", "status", cwd=edition.folder).stdout.split())


def test_unreviewed_images_that_count_as_clean(edition: Edition) -> None:
    """As for review_apply: what nobody has looked at is not open."""
    (edition.folder / "params.yaml").write_text(PARAMS.replace("unreviewed: pending", "unreviewed: clean"))
    found = review_status.run(edition)
    assert found.progress["standard"].by_state["settled"] == [0, 1]
    assert (found.progress[ALL_MODELS].at_least, found.progress[ALL_MODELS].at_most) == (0, 0)
    said = " ".join(cleanset("review", "status", cwd=edition.folder).stdout.split())
    assert "review.unreviewed is clean" in said
    assert (
        "Nothing has to be reviewed, but the review page asks for images of 2 classes: at least 2, at most 3." in said
    )
    assert "Nothing is left to be reviewed." not in said


def test_crops_that_a_model_misclassifies(edition: Edition) -> None:
    """Image 2 of the tenches is cropped: its crop is misclassified, so model standard loses it and then needs 3."""

    def standard() -> tuple[list[int], int]:
        progress = review_status.run(edition).progress["standard"]
        return list(progress.by_state["settled"]), progress.at_least

    assert standard() == ([0], 1)
    put(
        edition.crop_scores("standard"),
        [(val(2), [0, 0, 40, 30], [5, 0, 1, 2, 3], [0.5, 0.125, 0, 0, 0], 0.0)],
        CROP_SCORES,
    )
    assert standard() == ([], 2)
    params = edition.folder / "params.yaml"
    params.write_text(PARAMS.replace("unreviewed: pending", "unreviewed: pending, wrong_after_crop: accept"))
    assert standard() == ([0], 1)
    params.write_text(PARAMS)
    edition.crop_scores("standard").unlink()  # not scored yet
    assert standard() == ([0], 1)


def test_a_class_without_candidates_is_short(edition: Edition) -> None:
    (edition.folder / "params.yaml").write_text(PARAMS.replace("classes: [", "classes: [n01484850, "))
    assert 2 in review_status.run(edition).progress["standard"].by_state["short"]


def test_a_review_of_other_bytes_stops_it(edition: Edition) -> None:
    path = edition.reviews / "ann" / f"{TENCH}.yaml"
    path.write_text(path.read_text().replace(sha(4), sha(5)))
    with pytest.raises(CleansetError, match="other bytes were reviewed"):
        review_status.run(edition)


def test_without_candidates_it_says_what_to_do(edition: Edition) -> None:
    edition.candidates("norm_robust").unlink()
    assert Made(edition.folder).run("review", "status") == (
        1, "error: data/candidates/norm_robust.parquet: missing; run dvc repro, or dvc pull to fetch it\n",
    )  # fmt: skip


def test_review_alone_shows_its_help(edition: Edition) -> None:
    code, shown, errors = says(cleanset("review", cwd=edition.folder))
    assert (code, errors) == (2, "")
    assert "status" in shown
