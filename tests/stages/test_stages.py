"""Each of the table stages alone, on a tiny edition written by hand.

Class 0 is n01440764 (tench), class 1 n01443537 (goldfish); tier top5 has two images, a full class
two. What one stage must write is what the next one gets to read.
"""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cleanset.classes import imagenet
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.stages import (
    count,
    crops,
    intersect,
    report,
    review_apply,
    select,
)
from cleanset.tables import (
    CANDIDATES,
    CROP_SCORES,
    CROPS,
    INDEX,
    MARGINS,
    REJECTED,
    SCORES,
    SELECTION,
    SHARED,
    VOTES,
    Table,
    read_table,
    write_table,
)

PARAMS = """
root: .
dataset:
  images: data/raw/images
  classes: [n01440764, n01443537]
models:
  standard: {source: timm, name: a}
  norm_robust: {source: timm, name: b}
  corruption_robust: {source: timm, name: c}
select: {candidates: 2, tiers: [top5, reserve, relaxed]}
review: {policy: single, min_reviewers: 1, min_crop_pixels: 8, unreviewed: pending}
export: {images_per_class: 2}
"""
ROLES = ("standard", "norm_robust", "corruption_robust")

Row = tuple[object, ...]


LOG_ODDS = {0.25: -1.125, 0.5: 0.0, 0.625: 0.5, 0.75: 1.125, 0.8125: 1.5, 0.875: 2.0}
"""By confidence, near log(p / (1 - p)) and exact in float32."""


def val(number: int) -> str:
    return f"ILSVRC2012_val_{number:08d}"


def sha(number: int) -> str:
    return f"{number:064x}"


def image(number: int, ilsvrc_class: int, real_classes: list[int]) -> Row:
    """A row of the index: an image of 50 x 30 pixels."""
    single = len(real_classes) == 1
    return (val(number), 1000, sha(number), 50, 30, "RGB", sha(0), ilsvrc_class, real_classes, single)


def answer(number: int, top1: int, confidence: float) -> Row:
    """A row of scores: the top-1 class, then the four that follow it by number."""
    return (val(number), [top1 + place for place in range(5)], [confidence, 0.125, 0.0, 0.0, 0.0], LOG_ODDS[confidence])


INDEX_ROWS = [
    image(1, 0, [0]),
    image(2, 0, [0]),
    image(3, 0, [0]),
    image(4, 1, [0]),
    image(5, 1, [1]),
    image(6, 0, [0, 1]),
    image(7, 5, []),
    image(8, 1, [1]),
]
SCORE_ROWS = {
    "standard": [
        answer(1, 0, 0.875), answer(2, 0, 0.75), answer(3, 0, 0.5), answer(4, 0, 0.625),
        answer(5, 1, 0.5), answer(6, 1, 0.25), answer(7, 0, 0.75), answer(8, 0, 0.5),
    ],
    "norm_robust": [
        answer(1, 0, 0.5), answer(2, 0, 0.75), answer(3, 0, 0.5), answer(4, 1, 0.5),
        answer(5, 1, 0.5), answer(6, 0, 0.5), answer(7, 1, 0.5), answer(8, 1, 0.75),
    ],
    "corruption_robust": [
        answer(1, 0, 0.5), answer(2, 0, 0.5), answer(3, 0, 0.5), answer(4, 0, 0.5),
        answer(5, 1, 0.5), answer(6, 2, 0.5), answer(7, 0, 0.5), answer(8, 0, 0.5),
    ],
}  # fmt: skip
SHARED_ROWS: list[Row] = [(val(1), 0), (val(2), 0), (val(3), 0), (val(5), 1)]
CANDIDATE_ROWS: dict[str, list[Row]] = {
    "standard": [
        (val(1), 0, "top5", 1, 0.875, 2.0),
        (val(2), 0, "top5", 2, 0.75, 1.125),
        (val(3), 0, "reserve", 4, 0.5, 0.0),
        (val(4), 0, "reserve", 3, 0.625, 0.5),
        (val(5), 1, "top5", 1, 0.5, 0.0),
        (val(6), 1, "relaxed", 2, 0.25, -1.125),
    ],
    "norm_robust": [
        (val(1), 0, "top5", 2, 0.5, 0.0),  # as sure as of image 3: the lower id goes first
        (val(2), 0, "top5", 1, 0.75, 1.125),
        (val(3), 0, "reserve", 3, 0.5, 0.0),
        (val(5), 1, "top5", 1, 0.5, 0.0),
        (val(6), 0, "relaxed", 4, 0.5, 0.0),
        (val(8), 1, "reserve", 2, 0.75, 1.125),
    ],
    "corruption_robust": [
        (val(1), 0, "top5", 1, 0.5, 0.0),
        (val(2), 0, "top5", 2, 0.5, 0.0),
        (val(3), 0, "reserve", 3, 0.5, 0.0),
        (val(4), 0, "reserve", 4, 0.5, 0.0),
        (val(5), 1, "top5", 1, 0.5, 0.0),
    ],
}
# class 1 has one shared image, so that none is out
MARGIN_ROWS: dict[str, list[Row]] = {
    "standard": [(val(2), 0, 0.75, 1.125, val(3), 0.5, 0.0, 0.25, 1.125)],
    "norm_robust": [(val(1), 0, 0.5, 0.0, val(3), 0.5, 0.0, 0.0, 0.0)],  # the lower id alone keeps image 1 in
    "corruption_robust": [(val(2), 0, 0.5, 0.0, val(3), 0.5, 0.0, 0.0, 0.0)],
}
SELECTION_ROWS: dict[str, list[Row]] = {
    "standard": [
        (val(2), 0, 1, "top5", 2, 0.75, [0, 0, 40, 30], False),
        (val(4), 0, 2, "reserve", 3, 0.625, None, False),
        (val(5), 1, 1, "top5", 1, 0.5, None, False),
    ],
    "norm_robust": [
        (val(2), 0, 1, "top5", 1, 0.75, [0, 0, 40, 30], False),
        (val(5), 1, 1, "top5", 1, 0.5, None, False),
    ],
    "corruption_robust": [],  # for count: a model with nothing left
}
REJECTED_ROWS: dict[str, list[Row]] = {
    "standard": [
        (val(1), 0, "top5", 1, 0.875, "watermark", False),
        (val(3), 0, "reserve", 4, 0.5, "not_needed", False),  # unreviewed, but the class is full without it
        (val(6), 1, "relaxed", 2, 0.25, "unreviewed", True),
    ],
    "norm_robust": [
        (val(1), 0, "top5", 2, 0.5, "watermark", False),
        (val(3), 0, "reserve", 3, 0.5, "unreviewed", True),
        (val(6), 0, "relaxed", 4, 0.5, "conflict", True),
        (val(8), 1, "reserve", 2, 0.75, "blur", False),
    ],
    "corruption_robust": [],
}
# the top-1 class of image 2 as ann crops it, and its probability
CROP_SCORE_ROWS: dict[str, list[Row]] = {
    role: [(val(2), [0, 0, 40, 30], *answer(2, top1, confidence)[1:])]
    for role, top1, confidence in (
        ("standard", 0, 0.8125), ("norm_robust", 0, 0.5), ("corruption_robust", 1, 0.625),
    )
}  # fmt: skip
REVIEWS = {
    "ann/n01440764.yaml": {
        1: f"{{verdict: reject, reason: watermark, sha256: {sha(1)!r}}}",
        2: f"{{verdict: crop, reason: text, crop: [0, 0, 40, 30], object_fully_visible: true, sha256: {sha(2)!r}}}",
        4: f"{{verdict: clean, sha256: {sha(4)!r}}}",
        6: f"{{verdict: clean, sha256: {sha(6)!r}}}",
    },
    "ann/n01443537.yaml": {
        5: f"{{verdict: unsure, sha256: {sha(5)!r}}}",
        8: f"{{verdict: reject, reason: blur, sha256: {sha(8)!r}}}",
    },
    "bob/n01440764.yaml": {6: f"{{verdict: unsure, sha256: {sha(6)!r}}}"},
    "board/n01443537.yaml": {5: f"{{verdict: clean, note: a plain goldfish, sha256: {sha(5)!r}}}"},
}


def put(path: Path, rows: Sequence[Row], table: Table) -> None:
    """Write a table with its rows as given."""
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = [pa.array([row[place] for row in rows], field.type) for place, field in enumerate(table.schema)]
    pq.write_table(pa.Table.from_arrays(columns, schema=table.schema), path)


def rows_of(path: Path, table: Table) -> list[Row]:
    content = pq.read_table(path)
    assert content.schema.equals(table.schema)
    return [tuple(row.values()) for row in content.to_pylist()]


def edition_in(folder: Path, *, backwards: bool = False) -> Edition:
    """The tiny edition, with every input of the stages; `backwards` reverses the order of the reviews."""
    edition, step = Edition(folder), -1 if backwards else 1
    folder.mkdir(exist_ok=True)
    (folder / "params.yaml").write_text(PARAMS)
    put(edition.index, INDEX_ROWS, INDEX)
    put(edition.shared, SHARED_ROWS, SHARED)
    for role in ROLES:
        put(edition.scores(role), SCORE_ROWS[role], SCORES)
        put(edition.candidates(role), CANDIDATE_ROWS[role], CANDIDATES)
        put(edition.margins(role), MARGIN_ROWS[role], MARGINS)
        put(edition.crop_scores(role), CROP_SCORE_ROWS[role], CROP_SCORES)
        put(edition.selection(role), SELECTION_ROWS[role], SELECTION)
        put(edition.rejected(role), REJECTED_ROWS[role], REJECTED)
    for name, entries in list(REVIEWS.items())[::step]:
        path = edition.reviews / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"  {val(number)}: {fields}\n" for number, fields in entries.items()]
        path.write_text(f"{path.stem}:\n{''.join(lines[::step])}")
    return edition


@pytest.fixture
def edition(tmp_path: Path) -> Edition:
    return edition_in(tmp_path / "edition")


def test_intersect(edition: Edition) -> None:
    edition.shared.unlink()
    intersect.run(edition)
    assert rows_of(edition.shared, SHARED) == SHARED_ROWS


@pytest.mark.parametrize("role", ROLES)
def test_select(edition: Edition, role: str) -> None:
    edition.candidates(role).unlink()
    edition.margins(role).unlink()
    select.run(edition, role)
    assert rows_of(edition.candidates(role), CANDIDATES) == CANDIDATE_ROWS[role]
    assert rows_of(edition.margins(role), MARGINS) == MARGIN_ROWS[role]


@pytest.mark.parametrize("tiers", [["top5"], ["top5", "reserve"]])
def test_select_only_the_tiers_asked_for(edition: Edition, tiers: list[str]) -> None:
    """The margins are those of all tiers: the first image out may be in a tier that is left out."""
    (edition.folder / "params.yaml").write_text(PARAMS.replace("[top5, reserve, relaxed]", f"[{', '.join(tiers)}]"))
    select.run(edition, "standard")
    assert rows_of(edition.candidates("standard"), CANDIDATES) == [
        row for row in CANDIDATE_ROWS["standard"] if row[2] in tiers
    ]
    assert rows_of(edition.margins("standard"), MARGINS) == MARGIN_ROWS["standard"]


def without(path: Path, table: Table, image: str) -> None:
    """Take an image out of a table."""
    frame = read_table(path, table, imagenet())
    write_table(path, frame[frame["image_id"] != image], table, imagenet())


def test_an_image_in_place_of_another_shows_in_the_metrics_of_its_class(edition: Edition) -> None:
    count.run(edition)
    before = {path: path.read_text() for path in edition.metrics.rglob("*.json")}
    table = read_table(edition.selection("standard"), SELECTION, imagenet())
    whole = (table["class_index"] == 0) & table["crop"].isna()
    table.loc[whole, "image_id"] = val(8)
    write_table(edition.selection("standard"), table, SELECTION, imagenet())
    count.run(edition)
    changed = [path for path, text in before.items() if path.read_text() != text]
    assert changed == [edition.metrics / "classes" / "n01440764.json"]
    counts = [{**json.loads(text), "SHA-256": ""} for text in (before[changed[0]], changed[0].read_text())]
    assert counts[0] == counts[1]


@pytest.mark.parametrize("run", [intersect.run, lambda edition: select.run(edition, "standard"), count.run])
def test_scores_that_lack_an_image(edition: Edition, run: Callable[[Edition], None]) -> None:
    without(edition.scores("standard"), SCORES, val(7))
    with pytest.raises(
        CleansetError,
        match=r"data/scores/standard\.parquet: no row for ILSVRC2012_val_00000007; expected one for each of the 8 "
        r"images of the index: run dvc repro$",
    ):
        run(edition)


@pytest.mark.parametrize("run", [intersect.run, lambda edition: select.run(edition, "standard"), count.run])
def test_scores_of_another_image(edition: Edition, run: Callable[[Edition], None]) -> None:
    without(edition.index, INDEX, val(7))
    with pytest.raises(
        CleansetError, match=r"standard\.parquet: an unexpected row for ILSVRC2012_val_00000007; expected"
    ):
        run(edition)


def test_shared_images_of_other_scores(edition: Edition) -> None:
    put(edition.shared, [*SHARED_ROWS, (val(6), 1)], SHARED)
    with pytest.raises(CleansetError, match=r"^ILSVRC2012_val_00000006: shared, but misclassified by this model; "):
        select.run(edition, "standard")


def test_a_selection_of_another_index(edition: Edition) -> None:
    for role in ROLES:
        without(edition.scores(role), SCORES, val(5))
    without(edition.index, INDEX, val(5))
    with pytest.raises(CleansetError, match=r"selection/standard\.parquet: ILSVRC2012_val_00000005, which the index"):
        count.run(edition)


def test_select_only_the_classes_of_the_edition(edition: Edition) -> None:
    (edition.folder / "params.yaml").write_text(PARAMS.replace("[n01440764, n01443537]", "[n01443537]"))
    select.run(edition, "standard")
    assert rows_of(edition.candidates("standard"), CANDIDATES) == CANDIDATE_ROWS["standard"][4:]


@pytest.mark.parametrize("role", ["standard", "norm_robust"])
def test_review_apply(edition: Edition, role: str) -> None:
    edition.selection(role).unlink()
    edition.rejected(role).unlink()
    review_apply.run(edition, role)
    assert rows_of(edition.selection(role), SELECTION) == SELECTION_ROWS[role]
    assert rows_of(edition.rejected(role), REJECTED) == REJECTED_ROWS[role]


def test_review_apply_without_any_review(edition: Edition) -> None:
    for name in REVIEWS:
        (edition.reviews / name).unlink()
    review_apply.run(edition, "standard")
    assert rows_of(edition.selection("standard"), SELECTION) == []
    assert rows_of(edition.rejected("standard"), REJECTED) == [
        (*row[:-1], "unreviewed", True) for row in CANDIDATE_ROWS["standard"]
    ]


def test_review_apply_taking_unreviewed_images_for_clean(edition: Edition) -> None:
    (edition.folder / "params.yaml").write_text(PARAMS.replace("unreviewed: pending", "unreviewed: clean"))
    review_apply.run(edition, "norm_robust")
    kept = rows_of(edition.selection("norm_robust"), SELECTION)
    # image 3, which nobody has seen, comes in; image 6, on which two disagree, does not
    assert [row[:4] for row in kept] == [(val(2), 0, 1, "top5"), (val(3), 0, 2, "reserve"), (val(5), 1, 1, "top5")]
    assert rows_of(edition.rejected("norm_robust"), REJECTED)[1] == (val(6), 0, "relaxed", 4, 0.5, "not_needed", False)


MISCLASSIFIED = (val(2), 0, "top5", 2, 0.5, "wrong_after_crop", False)


def test_review_apply_of_a_crop_that_the_model_misclassifies(edition: Edition) -> None:
    """The next candidates take its turn: image 4, and image 3, which is to be reviewed."""
    review_apply.run(edition, "corruption_robust")
    assert [row[:3] for row in rows_of(edition.selection("corruption_robust"), SELECTION)] == [
        (val(4), 0, 1),
        (val(5), 1, 1),
    ]
    assert rows_of(edition.rejected("corruption_robust"), REJECTED) == [
        (val(1), 0, "top5", 1, 0.5, "watermark", False),
        MISCLASSIFIED,
        (val(3), 0, "reserve", 3, 0.5, "unreviewed", True),
    ]


def test_review_apply_takes_it_nevertheless_if_told_so(edition: Edition) -> None:
    text = PARAMS.replace("unreviewed: pending", "unreviewed: pending, wrong_after_crop: accept")
    (edition.folder / "params.yaml").write_text(text)
    review_apply.run(edition, "corruption_robust")
    kept = [row[:3] for row in rows_of(edition.selection("corruption_robust"), SELECTION)]
    assert kept == [(val(2), 0, 1), (val(4), 0, 2), (val(5), 1, 1)]
    for role in ROLES[:2]:
        review_apply.run(edition, role)
    count.run(edition)
    totals = {
        name: json.loads((edition.metrics / "totals" / f"{name}.json").read_text())
        for name in ("images_wrong_after_crop", "rejected_wrong_after_crop", "confidence_change_by_crop")
    }
    assert [list(numbers.values()) for numbers in totals.values()] == [[0, 0, 1], [0, 0, 0], [0.0625, -0.25]]


@pytest.mark.parametrize("run", [lambda edition: review_apply.run(edition, "standard"), count.run])
def test_scores_that_lack_a_crop(edition: Edition, run: Callable[[Edition], None]) -> None:
    rows: list[Row] = [(val(2), [0, 0, 40, 29], *answer(2, 0, 0.5)[1:])]
    put(edition.crop_scores("standard"), rows, CROP_SCORES)
    before = edition.selection("standard").read_bytes()
    with pytest.raises(
        CleansetError,
        match=r"data/crop_scores/standard\.parquet: no scores of ILSVRC2012_val_00000002 cropped to "
        r"\[0, 0, 40, 30\], which the reviews ask for; .*: run dvc repro",
    ):
        run(edition)
    assert edition.selection("standard").read_bytes() == before


def test_crops_lists_every_box_that_anybody_drew(edition: Edition) -> None:
    """The board's and those that nobody else agrees with; each box of an image once."""
    more = {"verdict": "crop", "reason": "text", "object_fully_visible": "true", "note": "n"}
    for reviewer, number, box in (
        ("bob", 2, "[0, 0, 40, 30]"), ("cy", 2, "[0, 0, 40, 9]"), ("board", 1, "[10, 2, 50, 30]"),
        ("dan", 1, "[9, 2, 50, 30]"),
    ):  # fmt: skip
        path = edition.reviews / reviewer / "n01440764.yaml"
        path.parent.mkdir(exist_ok=True)
        fields = more | {"crop": box, "sha256": repr(sha(number))}
        path.write_text(f"n01440764:\n  {val(number)}: {{{', '.join(f'{k}: {v}' for k, v in fields.items())}}}\n")
    crops.run(edition)
    assert rows_of(edition.crops, CROPS) == [
        (val(1), [9, 2, 50, 30]),
        (val(1), [10, 2, 50, 30]),
        (val(2), [0, 0, 40, 9]),
        (val(2), [0, 0, 40, 30]),
    ]


def test_crops_without_any_review(edition: Edition) -> None:
    for name in REVIEWS:
        (edition.reviews / name).unlink()
    crops.run(edition)
    assert rows_of(edition.crops, CROPS) == []


def test_crops_refuses_a_box_outside_the_image(edition: Edition) -> None:
    path = edition.reviews / "ann" / "n01440764.yaml"
    path.write_text(path.read_text().replace("[0, 0, 40, 30]", "[0, 0, 51, 30]"))
    with pytest.raises(CleansetError, match=r"crop \[0, 0, 51, 30\] in an image of 50 x 30 pixels"):
        crops.run(edition)
    assert not edition.crops.exists()


def test_review_apply_refuses_a_review_of_other_bytes(edition: Edition) -> None:
    path = edition.reviews / "ann" / "n01440764.yaml"
    path.write_text(path.read_text().replace(sha(4), sha(9)))
    before = edition.selection("standard").read_bytes()
    with pytest.raises(CleansetError, match=rf"line 4, {val(4)}: sha256 0+9, but the image has 0+4: other bytes"):
        review_apply.run(edition, "standard")
    assert edition.selection("standard").read_bytes() == before


@pytest.mark.parametrize("run", [select.run, review_apply.run])
def test_an_unknown_model(edition: Edition, run: Callable[[Edition, str], None]) -> None:
    with pytest.raises(
        CleansetError, match=r"no model 'vit'; expected one of standard, norm_robust, corruption_robust"
    ):
        run(edition, "vit")


def test_count(edition: Edition) -> None:
    stale = edition.metrics / "classes" / "n01484850.json"  # of an earlier run with more classes
    stale.parent.mkdir(parents=True)
    stale.write_text("{}")
    count.run(edition)
    written = {
        path.relative_to(edition.metrics).with_suffix("").as_posix(): path.read_text()
        for path in edition.metrics.rglob("*.json")
    }
    counts = '{"standard": 2, "norm_robust": 1, "corruption_robust": 0, "SHA-256": "'
    assert written["classes/n01440764"].startswith(counts)
    assert "classes/n01484850" not in written
    lines = {name: json.loads(text) for name, text in written.items()}
    digests = [lines[name].pop("SHA-256") for name in ("classes/n01440764", "classes/n01443537")]
    assert [len(each) for each in digests] == [8, 8]
    assert lines.pop("totals/confidence_change_by_crop") == {"standard": 0.0625, "norm_robust": -0.25}  # no third crop
    # only the second model has a candidate that two reviewers saw, and they differ on it
    assert lines.pop("totals/reviewers_agreement") == {"norm_robust": 0.0}
    assert "totals/reviewers_kappa" not in lines
    assert all(tuple(numbers) == ROLES for numbers in lines.values())
    in_order = {name.removeprefix("totals/"): list(numbers.values()) for name, numbers in lines.items()}
    assert {name: numbers for name, numbers in in_order.items() if any(numbers)} == {
        "classes/n01440764": [2, 1, 0],
        "classes/n01443537": [1, 1, 0],
        "images": [3, 2, 0],
        "images_cropped": [1, 1, 0],
        "images_top5": [2, 2, 0],
        "images_reserve": [1, 0, 0],
        "classes_full": [1, 0, 0],
        "classes_short": [1, 2, 2],
        "classes_unsettled": [1, 1, 0],
        "rejected_watermark": [1, 1, 0],
        "rejected_blur": [0, 1, 0],
        "rejected_conflict": [0, 1, 0],
        "rejected_unreviewed": [1, 1, 0],
        "rejected_not_needed": [1, 0, 0],
        "accuracy_top1": [50.0, 87.5, 50.0],
        "accuracy_top5": [75.0, 100.0, 75.0],
        "accuracy_real": [85.71, 85.71, 71.43],
        "correct_of_one_label": [5, 5, 5],
        "reviewed_by_several": [0, 1, 0],
        "reviewers_differ": [0, 1, 0],
        "margins_below_1e-5": [0, 1, 1],
        "margin_smallest_ppm": [250000.0, 0.0, 0.0],
        "log_odds_margin_smallest_ppm": [1125000.0, 0.0, 0.0],
    }
    assert edition.short_classes.read_text() == (
        "model,wnid,kept,candidates,rejected\n"
        "standard,n01443537,1,2,unreviewed 1\n"
        'norm_robust,n01440764,1,4,"conflict 1, unreviewed 1, watermark 1"\n'
        "norm_robust,n01443537,1,2,blur 1\n"
        "corruption_robust,n01440764,0,0,\n"
        "corruption_robust,n01443537,0,0,\n"
    )


def test_the_votes_that_decided_a_set(edition: Edition) -> None:
    """A row for each image and reviewer; those on images that the set does not need are left out."""
    review_apply.run(edition, "standard")
    expected = [
        (val(1), "ann", "reject", "watermark", None),
        (val(2), "ann", "crop", "text", [0, 0, 40, 30]),
        (val(4), "ann", "clean", None, None),
        (val(5), "ann", "unsure", None, None),
        (val(5), "board", "clean", None, None),
    ]
    assert rows_of(edition.votes("standard"), VOTES) == expected
    path = edition.reviews / "bob" / "n01440764.yaml"
    path.write_text(f"{path.read_text()}  {val(3)}: {{verdict: clean, sha256: {sha(3)!r}}}\n")
    review_apply.run(edition, "standard")  # class 0 is full without image 3
    assert rows_of(edition.votes("standard"), VOTES) == expected


def test_count_names_the_tables_that_it_read(edition: Edition) -> None:
    """As `md5sum` does: a table with other content than the one in dvc.lock shows."""
    count.run(edition)
    lines = edition.tables_md5.read_text().splitlines()
    kinds = ("crop_scores", "margins", "rejected", "scores", "selection")
    names = ["data/index.parquet", *(f"data/{kind}/{role}.parquet" for kind in kinds for role in ROLES)]
    expected = {name: hashlib.md5((edition.folder / name).read_bytes()).hexdigest() for name in names}
    assert lines == [f"{expected[name]}  {name}" for name in sorted(names)]
    put(edition.margins("standard"), MARGIN_ROWS["standard"][:0], MARGINS)
    count.run(edition)
    changed = set(edition.tables_md5.read_text().splitlines()) - set(lines)
    assert {line.split()[1] for line in changed} == {"data/margins/standard.parquet"}


def written_by(edition: Edition) -> dict[str, bytes]:
    """Run the stages one after another: the bytes of every file that they write."""
    crops.run(edition)
    intersect.run(edition)
    for role in ROLES:
        select.run(edition, role)
        review_apply.run(edition, role)
    count.run(edition)
    tables = [edition.shared, edition.crops, edition.short_classes]
    tables += [
        of(role)
        for role in ROLES
        for of in (edition.candidates, edition.margins, edition.votes, edition.selection, edition.rejected)
    ]
    return {
        path.relative_to(edition.folder).as_posix(): path.read_bytes()
        for path in [*tables, *edition.metrics.rglob("*.json")]
    }


@pytest.mark.long
@pytest.mark.slow
def test_the_same_bytes_again_and_from_reviews_in_another_order_and_place(tmp_path: Path) -> None:
    edition = edition_in(tmp_path / "one")
    first = written_by(edition)
    assert written_by(edition) == written_by(edition_in(tmp_path / "other", backwards=True)) == first
    assert len(first) > 30


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "line 1: not JSON"),
        ('{"standard": NaN}', "not JSON (NaN is not a number)"),
        ('{"standard": 1, "standard": 2}', "not JSON (the key 'standard' a second time)"),
        ("[1]", "found [1]; expected a number for each model: run dvc repro"),
        ('{"standard": "5"}', "found '5'; expected a number for each model"),
    ],
)
def test_metrics_that_the_report_cannot_read(edition: Edition, text: str, message: str) -> None:
    path = edition.metrics / "totals" / "images.json"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(CleansetError, match=re.escape(message)):
        report.totals(edition)
    path.write_text('{"standard": 5, "norm_robust": 0.5}')
    assert report.totals(edition) == {"images": {"standard": 5, "norm_robust": 0.5}}
