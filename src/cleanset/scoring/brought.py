"""Scores without a network: from a user's table, from a list of correctly classified images, or in a random order."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path

import numpy as np
import pandas as pd

from cleanset.classes import ClassTable
from cleanset.edition.params import Model
from cleanset.errors import CleansetError
from cleanset.plumbing.csv_files import read_frame
from cleanset.plumbing.files import sha256_of
from cleanset.plumbing.validation import join_names, normal_text, shown
from cleanset.scoring.logits import TOP, ScoreColumns, log_odds_of, ranked
from cleanset.statistics.basics import Floats, Ints, Singles

LabelsOfImages = Mapping[str, Sequence[int]]
"""The class indices of the labels of every image of an index, by image id."""

_ROLE = re.compile("[a-z][a-z0-9_]{0,63}")
MAX_TABLE_BYTES = 2**30
"""Bytes of a table of scores, which has a column for each class."""
# largest distance of the sum of an image's probabilities from 1: those of many classes are rounded
MAX_ROUNDING = 0.01


def scores_of(correct: pd.DataFrame, labels: LabelsOfImages, classes: ClassTable) -> pd.DataFrame:
    """A score table for a model that classifies correctly the images of `correct`, with their confidence, and no other.

    `correct` has columns class_index, image_id, confidence. Every other image has probability 0 for a class
    other than its labels: nothing else is known about it.
    """
    rows = zip(correct["image_id"], correct["class_index"], correct["confidence"], strict=True)
    known = {name: (top1, confidence) for name, top1, confidence in rows}
    top1 = [known[name][0] if name in known else _no_label(each, classes) for name, each in labels.items()]
    confidences = np.array([known[name][1] if name in known else 0 for name in labels], dtype=np.float32)
    return _table(list(labels), np.array(top1), confidences, classes)


def _no_label(labels: Sequence[int], classes: ClassTable) -> int:
    """The lowest class that is not among the labels."""
    return next(index for index in range(len(classes)) if index not in labels)


def _table(image_ids: Sequence[str], top1: Ints, confidences: Singles, classes: ClassTable) -> pd.DataFrame:
    """A score table with only the top-1 class and its probability; the further classes are placeholders."""
    count = len(classes)
    probabilities = np.zeros((len(image_ids), TOP), dtype=np.float32)
    probabilities[:, 0] = confidences
    indices = (top1[:, None] + np.arange(TOP)) % count
    indices[:, count:] = -1
    top: ScoreColumns = {"top5_class": indices.astype(np.int16), "top5_probability": probabilities}
    return _scores(image_ids, top, log_odds_of(confidences))


def models_of(path: Path | None, labels: LabelsOfImages, classes: ClassTable) -> dict[str, Model]:
    """The models of an edition of your own images: from a table of scores, or a placeholder without one.

    Every score is read and checked, as `read_scores` does. The table is to be copied into the edition as scores.csv.
    """
    if path is None:
        return {"images": Model(source="random", name="0")}
    names = _read(path).get("model", pd.Series(["model"])).unique().tolist()
    digest = sha256_of(path)
    models = {}
    for name in names:
        role = re.sub("[^a-z0-9]+", "_", name.lower()).strip("_")
        if not _ROLE.fullmatch(role) or role in models:
            raise CleansetError(
                f"{path}: model {shown(name)}; expected names that begin with a letter and differ in letters or digits"
            )
        read_scores(path, name, labels, classes)
        models[role] = Model(source="scores", name=name, file=f"scores{path.suffix}", sha256=digest)
    return models


def random_scores(seed: str, index: pd.DataFrame, classes: ClassTable) -> pd.DataFrame:
    """A score table that puts the images in a random order: each is in its class, by a number drawn from its bytes.

    The numbers are not confidences. They depend on `seed` and the SHA-256 of the image alone: an added image moves
    no other.
    """
    digests = (hashlib.sha256(f"{seed} {digest}".encode()).digest() for digest in index["sha256"])
    drawn = np.array([int.from_bytes(digest[:3]) / 2**24 for digest in digests], dtype=np.float32)
    # an image without a label is never a candidate, whatever its class here
    top1 = np.array([labels[0] if len(labels) else 0 for labels in index["real_classes"]], dtype=np.int64)
    return _table(index["image_id"].tolist(), top1, drawn, classes)


def read_scores(path: Path, model: str, labels: LabelsOfImages, classes: ClassTable) -> pd.DataFrame:
    """The score table of a model from a CSV of softmax probabilities, a row for each image and model.

    Columns: file, an image id; model, which may be missing if the file has one model; then either a column for each
    class, by its key, or class and confidence, of the top-1 class. Raises CleansetError for the first image or column
    that is missing, surplus or doubled, and for an invalid probability.
    """
    rows = _rows(path, model)
    wanted = set(labels)
    found = set(rows["file"])
    for image_id in sorted(wanted ^ found)[:1]:
        what = "no scores of" if image_id in wanted else "scores of an unknown image,"
        raise CleansetError(f"{path}: {what} {shown(image_id)}; expected a row for each image of the edition")
    rows = rows.set_index("file").loc[list(labels)]
    if list(rows.columns) == ["class", "confidence"]:
        return _of_top1(path, rows, classes)
    return _of_all_classes(path, rows, classes)


_TEXTS = {"file", "model", "class"}
_EXPECTED = "expected the columns file, perhaps model, then one for each class, or class and confidence"


def _read(path: Path) -> pd.DataFrame:
    table = _read_with(path, _TEXTS)
    texts = {name for name in table.columns if normal_text(str(name)) in _TEXTS}
    if not texts <= _TEXTS:  # blanks in the header: pandas took the cells for numbers
        table = _read_with(path, texts)
    table.columns = pd.Index([normal_text(str(name)) for name in table.columns])
    for name in table.columns[table.columns.duplicated()][:1]:
        raise CleansetError(f"{path}: column {shown(name)} a second time; expected each once")
    return table


def _read_with(path: Path, texts: Set[str]) -> pd.DataFrame:
    """The table, with the columns `texts` as text."""
    dtype = dict.fromkeys(texts, str)
    return read_frame(path, ("file",), _EXPECTED, MAX_TABLE_BYTES, dtype=dtype, na_values=[])


def _rows(path: Path, model: str) -> pd.DataFrame:
    """The rows of one model, without the column model. Raises CleansetError for a file that cannot be read so."""
    table = _read(path)
    columns = list(table.columns)
    if "model" in columns:
        names = table["model"].unique().tolist()
        if model not in names:
            raise CleansetError(f"{path}: no scores of model {shown(model)}; expected one of {join_names(names)}")
        table = table[table["model"] == model].drop(columns="model")
    if columns[:1] != ["file"] or len(columns) < 3:
        raise CleansetError(f"{path}: columns {shown(', '.join(columns))}; {_EXPECTED}")
    for image_id in table.loc[table["file"].duplicated(), "file"].tolist()[:1]:
        raise CleansetError(f"{path}: {shown(image_id)} a second time for one model; expected a row for each image")
    return table


def _of_top1(path: Path, rows: pd.DataFrame, classes: ClassTable) -> pd.DataFrame:
    keys = rows["class"].map(normal_text)
    for image_id, key in keys.items():
        if key not in classes.indices:
            raise CleansetError(f"{path}: {shown(image_id)} has the class {shown(key)}; expected a class of the images")
    top1 = np.array([classes.indices[key] for key in keys], dtype=np.int64)
    confidences = _probabilities(path, rows[["confidence"]])[:, 0]
    return _table(rows.index.tolist(), top1, confidences.astype(np.float32), classes)


def _of_all_classes(path: Path, rows: pd.DataFrame, classes: ClassTable) -> pd.DataFrame:
    for key in sorted(set(rows.columns) ^ set(classes.keys))[:1]:
        what = "no column of class" if key in classes.indices else "a column of an unknown class,"
        raise CleansetError(f"{path}: {what} {shown(key)}; expected one for each class, and no other")
    probabilities = _probabilities(path, rows[list(classes.keys)])
    sums = probabilities.sum(axis=1)
    for place in np.flatnonzero(np.abs(sums - 1) > MAX_ROUNDING)[:1]:
        raise CleansetError(
            f"{path}: the numbers of {shown(rows.index[place])} sum up to {sums[place]:.6g}; expected softmax "
            "probabilities, whose sum is 1: apply softmax to logits"
        )
    first = probabilities.max(axis=1)
    return _scores(rows.index, ranked(probabilities), _log_odds(first, sums - first))


def _scores(image_ids: Iterable[str], top: ScoreColumns, log_odds: Singles) -> pd.DataFrame:
    """A score table from its columns."""
    columns = {name: list(values) for name, values in top.items()}
    return pd.DataFrame({"image_id": list(image_ids), **columns, "log_odds": log_odds})


def _log_odds(first: Floats, others: Floats) -> Singles:
    """log(p / q) of the top-1 class and the sum of the others; where either rounds to 0, as `log_odds_of` says."""
    known = (first > 0) & (others > 0)
    exact = np.log(np.where(known, first, 1)) - np.log(np.where(known, others, 1))
    return np.where(known, exact, log_odds_of(first.astype(np.float32))).astype(np.float32)


def _probabilities(path: Path, rows: pd.DataFrame) -> Floats:
    """The numbers of some columns. Raises CleansetError for the first that is not from 0 to 1."""
    numbers: Floats = rows.apply(pd.to_numeric, errors="coerce").to_numpy(np.float64)
    for place, column in np.argwhere(~((numbers >= 0) & (numbers <= 1)))[:1]:
        found = rows.iat[place, column]
        raise CleansetError(
            f"{path}: {shown(rows.index[place])}, {rows.columns[column]}: {shown(str(found))}; expected a probability "
            "from 0 to 1"
        )
    return numbers
