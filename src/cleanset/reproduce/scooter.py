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
from cleanset.reproduce.numbers import NotComputed, Number, Reproduction, reproduction
from cleanset.review.verdicts import Rejected
from cleanset.sets.published.image_set import SelectedImages, select_images
from cleanset.sets.published.lists import PUBLISHED_MODEL, RATINGS, TOP5, PublishedChoice
from cleanset.studies.realness.analysis import summary
from cleanset.studies.realness.ratings import read_ratings, texts_of

PRINTED: Any = data_beside(__file__, "scooter.yaml")
THREE = 3
BY_HAND = "counted by hand there; here from the 553 notes, read as verdicts (cleanset docs published_lists)"
"""Why numbers of the processing differ."""
NOTES = {
    "images removed from the Top-5 of these": "here all images of these lists that the notes reject; which of them are "
    "the 86 is not said",
    "of these, with a cropped substitute": "here a substitute is of rank 4 or 5; 58 of the classes keep a crop",
}
"""Why single numbers differ beyond that."""
EXCLUDED = 916
"""The class "web site"."""
REPEATED = "cadv_4_6"
"""A study whose ratings hold those of another one: it also takes people who failed more of the checks."""


def reproduce(_files: Path | None) -> Reproduction:
    """All numbers; the file that is needed, the reassessed labels, is timm's."""
    chosen = select_images(PublishedChoice())
    labels, missing = _labels()
    return reproduction(PRINTED, (*labels, *_set(chosen), *_processing(chosen), *_ratings()), missing)


def _labels() -> tuple[list[Number], list[NotComputed]]:
    """The number of images with one reassessed label."""
    where = "Data processing, step 1"
    try:
        path = timm_info("imagenet_real_labels.json")
    except CleansetError as error:
        return [], [NotComputed(where=where, numbers=1, why=str(error))]
    lists = read_reassessed(path.read_text(encoding="utf-8"), "timm")
    return [
        Number(
            where=where,
            quantity="images with exactly one reassessed label",
            printed=PRINTED["one_reassessed_label"],
            computed=sum(len(each) == 1 for each in lists),
            evidence="from raw data",
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
    }
    return [
        Number(where="The set", quantity=name, printed=printed, computed=computed[name], evidence="from raw data")
        for name, printed in PRINTED["set"].items()
    ]


def _processing(chosen: SelectedImages) -> list[Number]:
    """What was done by class, from the verdicts on the first three of each list."""
    computed = processing_counts(chosen)
    return [
        Number(
            where="Processing",
            quantity=name,
            printed=printed,
            computed=computed[name],
            evidence="from raw data",
            note=NOTES.get(name, BY_HAND),
        )
        for name, printed in PRINTED["processing"].items()
    ]


def processing_counts(chosen: SelectedImages) -> Counter[str]:
    """How many classes were treated in each way, by the names of the printed numbers."""
    verdicts = {key: next(iter(by_reviewer.values())).review.verdict for key, by_reviewer in chosen.votes.items()}
    kinds = {key: verdict.kind for key, verdict in verdicts.items()}
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
            'classes left out ("web site")': int(EXCLUDED not in images),
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
            continue
        found["the remaining classes"] += 1
        if len(first) == THREE and "reject" not in first:
            found["classes that only needed crops"] += 1
        elif of_list < THREE:
            found["classes that needed images from beyond the Top-5, or ended short"] += 1
            found["of these, filled up to three"] += images[class_index] == THREE
            found["images removed from the Top-5 of these"] += sum(
                kinds.get((class_index, name)) == "reject" for name in names
            )
        else:
            found["classes with another image of the Top-5 in place of a removed one"] += 1
            found["images removed from the first three of these"] += first.count("reject")
            substitutes = selected[class_index] & set(names[THREE:])
            found["of these, with a cropped substitute"] += any(
                kinds[class_index, name] == "crop" for name in substitutes
            )
            found["of these, with a watermarked image removed from the first three"] += any(
                isinstance(verdict, Rejected) and verdict.reason == "watermark"
                for verdict in (verdicts.get((class_index, name)) for name in names[:THREE])
            )
    found["classes with fewer than three images"] = sum(
        images[class_index] < THREE for class_index in range(CLASSES) if class_index != EXCLUDED
    )
    return found


def _ratings() -> list[Number]:
    """The number of participants, and mean, deviation and number of the ratings of each study."""
    found = []
    participants = 0
    for study, by_kind in PRINTED["ratings"].items():
        answers = read_ratings(texts_of([RATINGS / f"{study}.csv"])).ratings
        participants += study != REPEATED and len({each.person for each in answers})
        for kind, texts in by_kind.items():
            of_kind = summary(each.rating for each in answers if each.kind == kind)
            values = (of_kind.mean, of_kind.deviation, of_kind.ratings)
            found += [
                Number(
                    where=f"Ratings, {study}",
                    quantity=f"{kind} images, {name}",
                    printed=text,
                    computed=value,
                    evidence="from raw data",
                )
                for name, text, value in zip(("mean", "standard deviation", "number"), texts, values, strict=True)
                if value is not None
            ]
    return [
        Number(
            where="Abstract",
            quantity="participants",
            printed=PRINTED["participants"],
            computed=participants,
            evidence="from raw data",
        ),
        *found,
    ]
