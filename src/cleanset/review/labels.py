"""Label errors by confident learning (Northcutt, Jiang, Chuang 2021), and the table of corrected labels.

A model that was trained on these very images has learned their labels, and contradicts few of the wrong ones.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

import pandas as pd

from cleanset.classes import ClassTable
from cleanset.dataset.folder import LABEL_COLUMNS, groups_of
from cleanset.dataset.label_findings import Finding, finding
from cleanset.dataset.label_sources import PLACE, SourceLabels, known_sources, read_sources
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError, cut
from cleanset.plumbing.csv_files import csv_text, write_csv
from cleanset.plumbing.files import is_there
from cleanset.plumbing.validation import first_names
from cleanset.review.decided import checked_votes, decisions_under
from cleanset.review.opinions import MAX_LETTERS, OPINION_COLUMNS, Opinion
from cleanset.review.store import BOARD
from cleanset.review.verdicts import Rejected
from cleanset.selection.candidates import check_same_images
from cleanset.statistics.formats import percent
from cleanset.tables import INDEX, SCORES, read_table


@dataclass(frozen=True, slots=True)
class Contradiction:
    """An image whose label the models contradict: class indices, and mean probabilities over the models."""

    image_id: str
    label: int
    confidence: float
    predicted: int
    predicted_confidence: float

    def opinion(self, classes: ClassTable) -> Opinion:
        """The contradiction as a second opinion: wrong class, dog 91 %, cat 2 %."""
        predicted = f"{classes.labels[self.predicted]} {percent(self.predicted_confidence, 0)}"
        label = f"{classes.labels[self.label]} {percent(self.confidence, 0)}"
        return Opinion(self.image_id, "wrong class", cut(f"{predicted}, {label}", MAX_LETTERS))


def contradictions(index: pd.DataFrame, scores: Sequence[pd.DataFrame]) -> list[Contradiction]:
    """The images with one label that the models contradict, the least probable label first.

    The threshold of a class is the mean probability of the label over the images with that label. A label is
    contradicted by another, more probable class that reaches its threshold, the most probable one. The
    five most probable classes of each model are known; others count as 0.
    """
    labels = index[index["single"]].set_index("image_id")["real_classes"].str[0].astype(int).rename("label")
    top5 = ["top5_class", "top5_probability"]
    every = pd.concat([each.set_index("image_id")[top5].explode(top5).astype(float) for each in scores])
    mean = every.groupby(["image_id", "top5_class"])["top5_probability"].sum() / len(scores)
    every = mean.reset_index(name="p").join(labels, on="image_id", how="inner").astype({"top5_class": int})
    of_label = (
        every[every["top5_class"] == every["label"]].set_index("image_id")["p"].reindex(labels.index, fill_value=0)
    )
    every["confidence"] = every["image_id"].map(of_label)
    thresholds = every["top5_class"].map(of_label.groupby(labels).mean())
    found = every[(every["p"] >= thresholds) & (every["p"] > every["confidence"])]
    found = found.sort_values("p", ascending=False, kind="stable").drop_duplicates("image_id")
    found = found.sort_values(["confidence", "p", "image_id"], ascending=[True, False, True])
    columns = (found[name].tolist() for name in ("image_id", "label", "confidence", "top5_class", "p"))
    return [Contradiction(*row) for row in zip(*columns, strict=True)]


def contradictions_in(edition: Edition, classes: ClassTable) -> list[Contradiction]:
    """The contradictions in an edition. Raises CleansetError if no model has scores of all images."""
    models = read_params(edition.folder).models
    roles = [role for role, model in models.items() if model.source not in ("lists", "random")]
    if not roles:
        expected = "expected a model with scores of every image"
        raise CleansetError(f"{edition.params_yaml}: models {', '.join(models)} are lists or random; {expected}")
    index = read_table(edition.index, INDEX, classes)
    tables = []
    for role in roles:
        tables.append(read_table(edition.scores(role), SCORES, classes))
        check_same_images(index, tables[-1], str(edition.scores(role)))
    return contradictions(index, tables)


FLAGS: Mapping[Finding, str] = {
    "same": "same class",
    "among": "several objects",
    "unclear": "unclear class",
    "other": "wrong class",
    "none": "no class",
}
"""A study's finding in a few words, which the page shows as a question."""


def studies_of(edition: Edition, classes: ClassTable) -> list[SourceLabels]:
    """The label sources of export.label_sources; without that key all whose files are in the edition.

    None for your own images. Raises CleansetError as `read_sources`.
    """
    folder = edition.folder / PLACE
    names = read_params(edition.folder).export.label_sources
    has_files = any(is_there(folder / each.file) for each in known_sources().values())
    return read_sources(folder, names) if classes.is_imagenet and (names or has_files) else []


def opinions_on(
    found: Iterable[Contradiction], studies: Sequence[SourceLabels], classes: ClassTable
) -> dict[str, tuple[Opinion, ...]]:
    """Second opinions by image id, in the order of the contradictions: the models' and those of the studies."""
    return {
        each.image_id: (each.opinion(classes), *_of_studies(each.image_id, each.label, studies, classes))
        for each in found
    }


def _of_studies(image_id: str, label: int, studies: Sequence[SourceLabels], classes: ClassTable) -> Iterator[Opinion]:
    """What each study that has the image says: same class? finegrained; wrong class? multilabel: tabby."""
    for study in studies:
        known = study.labels.get(image_id)
        if known is not None:
            of_label = finding(known, label)
            name = study.source.name.replace("_", " ")
            named = "" if of_label == "same" else ", ".join(classes.labels[index] for index in known.classes)
            yield Opinion(image_id, FLAGS[of_label], cut(f"{name}: {named}" if named else name, MAX_LETTERS))


def as_opinions(opinions: Mapping[str, Sequence[Opinion]]) -> str:
    """The ranked list as a file for `review.opinions`."""
    return csv_text(OPINION_COLUMNS, (astuple(each) for of_image in opinions.values() for each in of_image))


def write_corrected(edition: Edition, path: Path) -> str:
    """Write labels.csv with the correct classes that reviewers have named, and return a line on it.

    Raises CleansetError for ImageNet's images, whose labels are the published ones, and if the file is there already.
    """
    classes = edition.read_classes()
    if classes.is_imagenet:
        raise CleansetError(f"{edition.folder}: images of ImageNet; expected an edition of your own images")
    if is_there(path):
        raise CleansetError(f"{path}: exists already; expected a new file: move it away")
    params = read_params(edition.folder)
    index = read_table(edition.index, INDEX, classes)
    votes = checked_votes(edition, params, index, classes)
    correct: dict[str, str] = {}
    unnamed = []
    for key, decision in decisions_under(params.review, votes).items():
        if (decision.verdict, decision.reason) == ("reject", "wrong_class"):
            deciding = [votes[key][BOARD]] if BOARD in votes[key] else votes[key].values()
            verdicts = [vote.review.verdict for vote in deciding]
            named = {each.correct_class for each in verdicts if isinstance(each, Rejected) and each.correct_class}
            if len(named) == 1:
                correct[key[1]] = named.pop()
            else:
                unnamed.append(key[1])
    groups = groups_of(edition.index)
    rows = [
        (image_id, correct.get(image_id, classes.keys[labels[0]]), *([groups[image_id]] if groups else []))
        for image_id, labels in zip(index["image_id"], index["real_classes"], strict=True)
    ]
    write_csv(path, LABEL_COLUMNS if groups else LABEL_COLUMNS[:-1], rows)
    told = f"{path}: {len(correct)} of {len(rows)} labels corrected"
    return f"{told}; wrong class, but no single correct class: {first_names(unnamed, 5)}" if unnamed else told
