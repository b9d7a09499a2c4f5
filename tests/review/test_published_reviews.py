"""The reviews of SCOOTER's authors in the ImageNet edition: the published verdicts, and the published rule."""

import csv
import os
import re
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from cleanset.classes import imagenet
from cleanset.dataset.ilsvrc import timm_info
from cleanset.dataset.labels import read_reassessed
from cleanset.edition.params import ReviewPolicy
from cleanset.review.decided import decide_all
from cleanset.review.store import check_note, read_reviews
from cleanset.selection.fill import fill, with_decisions
from cleanset.selection.metrics import totals

AS_WRITTEN = re.compile(
    "  ILSVRC2012_val_[0-9]{8}:\n"
    "    verdict: (clean|reject\n    reason: [a-z_]+|crop\n    reason: [a-z_]+\n    crop: unknown\n"
    "    object_fully_visible: true)\n"
    "    basis: (explicit|implied|default)\n"
    "    sha256: official\n"
    # quoted only where a colon would begin a value
    "(    note: ('.*: .*'|[A-Za-z0-9]((?!: ).)*)\n)?"
)
"""An entry as the page writes it."""
Rows = list[dict[str, str]]
Entry = dict[str, object]

EXPLICIT = {
    47: (25511, 48675, 3560), 195: (21914, 48157), 244: (39115, 6957), 270: (35908, 42098), 485: (43416,),
    523: (16620,), 584: (43418,),
}  # fmt: skip
NOT_JUST_MODIFIED = {
    182: (33226,), 314: (17845,), 611: (1430, 21562, 41984, 23048, 12056), 849: (22840,), 898: (43875,),
}  # fmt: skip
UNSURE_TOO = {503: (38514,)}
SHORT = {
    **dict.fromkeys((681, 836, 837, 848, 916), 0),
    **dict.fromkeys((620, 638, 664, 876, 885, 899), 1),
    **dict.fromkeys((472, 482, 501, 550, 618, 744, 782), 2),
}
"""The 17 short classes and class 916, which is left out, with how many images each has."""


@pytest.fixture(scope="module")
def folder(repository: Path) -> Path:
    return repository / "imagenet" / "reviews" / "scooter"


@pytest.fixture(scope="module")
def entries(folder: Path) -> dict[tuple[int, str], Entry]:
    """Every entry as plain YAML, by class index and image id."""
    index = {wnid: number for number, wnid in enumerate(imagenet().keys)}
    found = {}
    for path in folder.glob("*.yaml"):
        for wnid, of_class in yaml.safe_load(path.read_text()).items():
            assert wnid == path.stem
            found.update({(index[wnid], image_id): entry for image_id, entry in of_class.items()})
    return found


@pytest.fixture(scope="module")
def verdicts_csv(repository: Path) -> Rows:
    """The verdicts that the notes were turned into; skips if they are not next to the checkout.

    Tests that read them are marked real: like the photographs, they are not in the repository.
    """
    path = repository.parent / "shared" / "scooter" / "verdicts.csv"
    if not path.is_file() and not os.environ.get("CLEANSET_NO_SKIP"):
        pytest.skip(f"no {path}")
    with path.open() as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_the_files_are_as_the_page_writes_them(folder: Path) -> None:
    for by_reviewer in read_reviews(folder.parent, imagenet()).values():
        check_note("scooter", by_reviewer["scooter"].review, by_reviewer["scooter"].where)
    found = {path.stem: path.read_text() for path in folder.iterdir()}
    assert len(found) == 997
    for wnid, text in found.items():
        first, *entries = re.split(r"^(?=  ILSVRC)", text, flags=re.MULTILINE)
        assert first == f"{wnid}:\n"
        assert entries == sorted(set(entries))
        for entry in entries:
            assert AS_WRITTEN.fullmatch(entry), f"{wnid}.yaml: {entry}"


@pytest.mark.slow
def test_each_is_of_a_class_that_is_among_the_reassessed_labels(entries: dict[tuple[int, str], Entry]) -> None:
    """So that none is refused where the real images are: the labels are in timm."""
    labels = read_reassessed(timm_info("imagenet_real_labels.json").read_bytes(), "timm")
    for class_index, image_id in entries:
        assert class_index in labels[int(image_id[-8:]) - 1]


@pytest.mark.real
def test_they_say_what_was_published(entries: dict[tuple[int, str], Entry], verdicts_csv: Rows) -> None:
    assert len(verdicts_csv) == len(entries) == 3843
    for row in verdicts_csv:
        class_index, number = int(row["class_index"]), int(row["image_id"][-5:])
        entry = entries[class_index, row["image_id"]]
        assert entry["verdict"] == row["verdict"]
        assert entry["sha256"] == "official"
        basis = "explicit" if number in EXPLICIT.get(class_index, ()) else row["basis"]
        assert entry["basis"] == basis
        plain = row["reason"] not in ("unstated", "ambiguous", "other") and "|" not in row["reason"]
        if number in NOT_JUST_MODIFIED.get(class_index, ()):
            assert row["reason"] == "modification"
            plain = False
        if row["verdict"] == "clean":
            assert "reason" not in entry
        elif plain:
            assert entry["reason"] == row["reason"]
        else:
            assert entry["reason"] == "other"
            assert entry["note"]
        if row["verdict"] == "crop":
            assert (entry["crop"], entry["object_fully_visible"]) == ("unknown", True)
        else:
            assert "crop" not in entry
        unsure = row["comment"].startswith("unsure") or number in UNSURE_TOO.get(class_index, ())
        assert str(entry.get("note", "")).startswith("unsure") is unsure
        for words in filter(None, row["reason"].split("|") if "|" in row["reason"] else []):
            assert words.replace("_", " ") in str(entry["note"])


@pytest.mark.real
def test_each_correction_is_of_a_verdict_that_was_published(verdicts_csv: Rows) -> None:
    found = {(int(row["class_index"]), int(row["image_id"][-5:])): row for row in verdicts_csv}
    for class_index, numbers in EXPLICIT.items():
        assert {found[class_index, number]["basis"] for number in numbers} == {"implied"}
    for class_index, numbers in NOT_JUST_MODIFIED.items():
        assert {found[class_index, number]["reason"] for number in numbers} == {"modification"}
    assert found[503, 38514]["verdict"] == "reject"


@pytest.mark.real
def test_the_published_rule_gives_the_published_set(entries: dict[tuple[int, str], Entry], verdicts_csv: Rows) -> None:
    """The first three by rank that are clean or cropped, then those from beyond the Top-5."""
    places = {
        (int(row["class_index"]), row["image_id"]): 6 if row["place"] == "extra" else int(row["place"])
        for row in verdicts_csv
    }
    kept: dict[int, list[str]] = {}
    cropped = Counter[int]()
    for key in sorted(entries, key=lambda key: (key[0], places[key])):
        of_class = kept.setdefault(key[0], [])
        verdict = entries[key]["verdict"]
        if verdict in ("clean", "crop") and len(of_class) < 3:
            of_class.append(key[1])
            cropped[key[0]] += verdict == "crop"
    counts = {class_index: len(kept.get(class_index, [])) for class_index in range(1000)}
    assert sum(counts.values()) == 2966
    assert sum(count > 0 for count in counts.values()) == 995
    assert sum(count == 3 for count in counts.values()) == 982
    assert sum(cropped.values()) == 109
    assert {class_index: count for class_index, count in counts.items() if count < 3} == SHORT


def test_whose_work_it_is(repository: Path) -> None:
    """Stated next to the reviews, with the licence, and where people look first."""
    note = (repository / "imagenet" / "reviews" / "README.md").read_text()
    licence = (repository / "imagenet" / "published" / "LICENSE").read_text()
    assert "MIT License" in licence
    holder = next(line for line in licence.splitlines() if line.startswith("Copyright"))
    assert holder.split(") ")[-1].split(" ", 1)[-1] in note
    for text in (note, (repository / "README.md").read_text(), (repository / "CITATION.cff").read_text()):
        assert "SCOOTER" in text
        assert "2507.07776" in text


@pytest.fixture(scope="module")
def candidates(verdicts_csv: Rows) -> pd.DataFrame:
    """The images that were looked at, as norm_robust ranks them; those from beyond its Top-5 come after."""
    frame = pd.DataFrame(verdicts_csv)
    extra = frame["place"] == "extra"
    place = frame["place"].where(~extra, "6").astype(int)
    return pd.DataFrame(
        {
            "image_id": frame["image_id"],
            "class_index": frame["class_index"].astype(int),
            "tier": np.where(extra, "reserve", "top5"),
            "rank": place + extra * frame.groupby(["class_index", "place"]).cumcount(),
        }
    )


@pytest.mark.real
@pytest.mark.parametrize(
    ("crops", "unknown_boxes", "kept", "cropped", "boxes_asked"),
    [("in_rank", "count", 2966, 109, 0), ("in_rank", "open", 2857, 0, 109), ("last", "count", 2966, 109, 0)],
)
def test_the_rules_give_the_published_set(
    folder: Path, candidates: pd.DataFrame, crops: str, unknown_boxes: str, kept: int, cropped: int, boxes_asked: int
) -> None:
    """Nobody looked further once there were three, so that all that was accepted is kept, in whatever order."""
    policy = ReviewPolicy.model_validate({"crops": crops, "unknown_boxes": unknown_boxes})
    decided = decide_all(policy, read_reviews(folder.parent, imagenet()), {"norm_robust": {}})
    reviewed = with_decisions(candidates, partial(decided.for_candidate, "norm_robust"))
    filled = fill(reviewed, 3, policy.crops == "in_rank")
    numbers = totals(filled.selection, filled.rejected, range(1000), 3)
    assert (numbers["images"], numbers["images_cropped"], numbers["images_box_unknown"]) == (kept, cropped, cropped)
    assert (numbers["rejected_box_unknown"], int(filled.rejected["open"].sum())) == (boxes_asked, boxes_asked)
