"""Stage count: the metrics. One file per line of `dvc metrics show`, the models as its columns."""

import json
from pathlib import Path

import pandas as pd

from cleanset.after_crop import check_scored, effect, said_of_crops
from cleanset.counting import (
    accuracy,
    agreement_of_reviewers,
    closeness,
    per_class,
    short_classes,
    top1_minus_published,
    totals,
)
from cleanset.edition import Edition
from cleanset.files import replacing, write_text
from cleanset.ilsvrc import wnids
from cleanset.params import read_params
from cleanset.pipeline_file import check_roles
from cleanset.review.folder import read_reviews
from cleanset.tables import CROP_SCORES, INDEX, MARGINS, REJECTED, SCORES, SELECTION, read_table

Lines = dict[str, dict[str, float | int]]
"""By the name of the line: the number of each model that has one."""


def run(edition: Edition) -> None:
    """Read what the other stages wrote for every model, write metrics/ and data/short_classes.csv."""
    params = read_params(edition.folder)
    check_roles(edition.folder, "count", params.models)
    classes, per = params.dataset.class_list(), params.export.images_per_class
    index = read_table(edition.index, INDEX)
    votes = read_reviews(edition.reviews)
    lines: Lines = {}
    short = []
    for role in params.models:
        selection = read_table(edition.selection(role), SELECTION)
        rejected = read_table(edition.rejected(role), REJECTED)
        for class_index, count in per_class(selection, classes).items():
            lines.setdefault(f"classes/{wnids()[class_index]}", {})[role] = count
        scores = read_table(edition.scores(role), SCORES)
        numbers = totals(selection, rejected, classes, per) | accuracy(index, scores)
        said = said_of_crops(read_table(edition.crop_scores(role), CROP_SCORES))
        check_scored(selection, said, str(edition.crop_scores(role)))
        numbers |= effect(selection, said)
        numbers |= top1_minus_published(numbers["accuracy_top1"], params.count.published_top1.get(role))
        numbers |= closeness(read_table(edition.margins(role), MARGINS))
        numbers |= agreement_of_reviewers(votes, selection, rejected)
        for name, number in numbers.items():
            lines.setdefault(f"totals/{name}", {})[role] = number
        short.append(short_classes(selection, rejected, classes, per).assign(model=role))
    write_metrics(edition.metrics, lines)
    write_short_classes(edition.short_classes, pd.concat(short))


def write_metrics(folder: Path, lines: Lines) -> None:
    """Write each line to its own small JSON file."""
    with replacing(folder) as partial:
        for name, numbers in lines.items():
            write_text(partial / f"{name}.json", json.dumps(numbers) + "\n")


def write_short_classes(path: Path, short: pd.DataFrame) -> None:
    """Write the classes that could not be filled, with the reasons."""
    short = short.assign(wnid=[wnids()[index] for index in short["class_index"]])
    columns = ["model", "wnid", "kept", "candidates", "rejected"]
    write_text(path, short[columns].to_csv(index=False, lineterminator="\n"))
