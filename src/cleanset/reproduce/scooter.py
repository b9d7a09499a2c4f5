"""SCOOTER (arXiv:2507.07776): the published set from lists and verdicts, and the ratings of seven studies.

Lists, verdicts and ratings are part of the package, under their authors' licence.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd

from cleanset.dataset.ilsvrc import CLASSES, timm_info
from cleanset.dataset.labels import read_reassessed
from cleanset.errors import CleansetError
from cleanset.plumbing.yaml_files import data_beside
from cleanset.reproduce.numbers import NotComputed, Number, Reproduction
from cleanset.sets.published.image_set import SelectedImages, select_images
from cleanset.sets.published.lists import PUBLISHED_MODEL, RATINGS, TOP5, PublishedChoice
from cleanset.studies.realness.analysis import summary
from cleanset.studies.realness.ratings import read_ratings, texts_of

TITLE = (
    "D. Fazlija et al., SCOOTER: A Human Evaluation Framework for Unrestricted Adversarial Examples (arXiv:2507.07776)"
)
PRINTED: Any = data_beside(__file__, "scooter.yaml")
THREE = 3
BY_HAND = "counted by hand there; here from the 553 notes, read as verdicts (docs/published_lists.md)"
"""Why numbers of the processing differ."""
EXCLUDED = 916
"""The class "web site"."""

NOT_COMPUTED = (
    NotComputed(
        where="The mixed models' differences and p-values",
        why="their printed values are not among the published files; `cleanset study analyse FILE` fits the model of "
        "each study in seconds (files: imagenet/published/ratings)",
    ),
    NotComputed(
        where="The Top-5 lists",
        why="they need the three networks on the 50,000 images: `dvc repro` in the edition imagenet",
    ),
    NotComputed(where="Reasons for removal, by class", why="printed as a figure without numbers"),
    NotComputed(where="Size of the set, 409.4 MB", why="the images are not published, nor are the boxes of 109 crops"),
    NotComputed(
        where="Ratings by GPT-4o",
        why="they are in the authors' repository (4o_ratings), but no number that follows from them is printed there",
    ),
)


def reproduce(_files: Path | None) -> Reproduction:
    """All numbers; the file that is needed, the reassessed labels, is timm's."""
    chosen = select_images(PublishedChoice())
    labels, missing = _labels()
    numbers = (*labels, *_set(chosen), *_processing(chosen), *_ratings())
    return Reproduction(title=TITLE, numbers=numbers, not_computed=(*missing, *NOT_COMPUTED))


def _labels() -> tuple[list[Number], list[NotComputed]]:
    """The number of images with one reassessed label."""
    where = "Data processing, step 1"
    try:
        path = timm_info("imagenet_real_labels.json")
    except CleansetError as error:
        return [], [NotComputed(where=where, why=str(error))]
    lists = read_reassessed(path.read_text(encoding="utf-8"), "timm")
    return [
        Number(
            where=where,
            quantity="images with exactly one reassessed label",
            printed=PRINTED["one_reassessed_label"],
            computed=sum(len(each) == 1 for each in lists),
        )
    ], []


def _set(chosen: SelectedImages) -> list[Number]:
    """Images and classes of the set."""
    selection = chosen.filled.selection
    counts = Counter(selection["class_index"].tolist())
    computed = {
        "images": len(selection),
        "classes": len(counts),
        "classes with three images": sum(count == THREE for count in counts.values()),
        "cropped images": int(selection["box_unknown"].sum()),
    }
    return [
        Number(where="The set", quantity=name, printed=printed, computed=computed[name])
        for name, printed in PRINTED["set"].items()
    ]


def _processing(chosen: SelectedImages) -> list[Number]:
    """What was done by class, from the verdicts on the first three of each list."""
    computed = processing_counts(chosen)
    return [
        Number(where="Processing", quantity=name, printed=printed, computed=computed[name], note=BY_HAND)
        for name, printed in PRINTED["processing"].items()
    ]


def processing_counts(chosen: SelectedImages) -> Counter[str]:
    """How many classes were treated in each way, by the names of the printed numbers."""
    kinds = {key: next(iter(by_reviewer.values())).review.verdict.kind for key, by_reviewer in chosen.votes.items()}
    selection = chosen.filled.selection
    images = Counter(selection["class_index"].tolist())
    top5 = pd.read_csv(TOP5)
    listed = top5[top5["model"] == PUBLISHED_MODEL].sort_values(["class_index", "rank"])
    lists = listed.groupby("class_index")["image_id"].agg(list).to_dict()
    selected = selection.groupby("class_index")["image_id"].agg(set).to_dict()
    found = Counter(
        {
            "classes with two images": sum(count == THREE - 1 for count in images.values()),
            "classes with one image": sum(count == 1 for count in images.values()),
        }
    )
    for class_index in range(CLASSES):
        names = lists.get(class_index, [])
        first = [kinds.get((class_index, name)) for name in names[:THREE]]
        of_list = len(selected.get(class_index, set()) & set(names))
        beyond = images[class_index] - of_list
        found["images from beyond the Top-5"] += beyond
        found['classes without an image, beside "web site"'] += not images[class_index] and class_index != EXCLUDED
        if first == ["clean"] * THREE:
            found["classes that are clean as listed"] += 1
        elif len(first) == THREE and "reject" not in first:
            found["classes that only needed crops"] += 1
        elif of_list < THREE:
            found["classes that needed images from beyond the Top-5, or ended short"] += 1
            found["of these, filled up to three"] += images[class_index] == THREE
        else:
            found["classes with another image of the Top-5 in place of a removed one"] += 1
            found["images removed from the first three of these"] += first.count("reject")
    return found


def _ratings() -> list[Number]:
    """Mean, deviation and number of the ratings of each study."""
    found = []
    for study, by_kind in PRINTED["ratings"].items():
        answers = read_ratings(texts_of([RATINGS / f"{study}.csv"])).ratings
        for kind, texts in by_kind.items():
            of_kind = summary(each.rating for each in answers if each.kind == kind)
            values = (of_kind.mean, of_kind.deviation, of_kind.ratings)
            found += [
                Number(where=f"Ratings, {study}", quantity=f"{kind} images, {name}", printed=text, computed=value)
                for name, text, value in zip(("mean", "standard deviation", "number"), texts, values, strict=True)
                if value is not None
            ]
    return found
