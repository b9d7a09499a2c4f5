"""`cleanset edition --accept`: pin today's images of an edition, take new tables, remove verdicts on changed images."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cleanset.dataset.by_content import moved_images
from cleanset.dataset.duplicate_search import search
from cleanset.dataset.duplicates import DUPLICATES
from cleanset.dataset.folder import LabelledImages, labels_text, read_images, read_labels
from cleanset.dataset.pinned import difference, digests_of, pinned_text, read_pinned
from cleanset.edition.about import About, read_about
from cleanset.edition.create import OF_TRAINING, TRAINING, check_none_empty, training_with_labels
from cleanset.edition.locks import check_idle
from cleanset.edition.models import pin_models
from cleanset.edition.params import Model, read_params
from cleanset.edition.paths import Edition, without_abandoned
from cleanset.edition.pipeline import with_table
from cleanset.edition.yaml_edit import LayoutError, edited_text
from cleanset.errors import CleansetError
from cleanset.plumbing.files import (
    is_there,
    read_bytes,
    read_text,
    remove_abandoned,
    sha256,
    sha256_of,
    write_bytes,
    write_text,
)
from cleanset.plumbing.yaml_files import parse_yaml
from cleanset.review.carried import NewImages, keep_what_holds, read_old_reviews
from cleanset.review.renamed import RenamedClasses
from cleanset.scoring.brought import read_scores


@dataclass(frozen=True, slots=True)
class NewTables:
    """Tables that come into an edition, in place of those that it has or next to the images alone."""

    labels: Path | None = None
    """A CSV of file, class and perhaps group."""

    names: Path | None = None
    """A CSV of class and name."""

    @property
    def given(self) -> dict[str, Path]:
        """The tables that are given, by key of dataset in params.yaml."""
        pairs = {"labels": self.labels, "names": self.names}
        return {key: path for key, path in pairs.items() if path is not None}


def accept(
    edition: Edition,
    scores: Path | None,
    card: Path | None = None,
    tables: NewTables | None = None,
    renamed: RenamedClasses | None = None,
) -> str:
    """Pin the current images of an edition, and remove the verdicts on images that have changed.

    `scores`: a new table of scores, in place of the one that was brought. `card`: a card.yaml, which is copied into
    params.yaml. `tables`: labels and names, which are copied into the edition, and which its pipeline then depends on.
    `renamed`: renamed classes. Returns a summary of the changes. Raises CleansetError while DVC is
    running there, if the edition is of ImageNet's images, has no images.sha256, if brought scores are of other images
    than today's, and if a class with verdicts seems to have another name.
    """
    check_idle(edition.folder)
    # what a killed call has left next to the files that it was writing
    without_abandoned(edition)
    remove_abandoned(edition.folder / TRAINING)
    params = read_params(edition.folder)
    about = read_about(card) if card else None
    if not params.dataset.is_own:
        raise CleansetError(
            f"{edition.params_yaml}: of ImageNet's images, which raw.md5 pins; expected an edition of your own images"
        )
    if not is_there(edition.images_sha256):
        raise CleansetError(
            f"{edition.images_sha256}: missing; restore it, or create the edition again: cleanset edition NEW "
            f"--images {params.dataset.images} --reviews {edition.folder}"
        )
    given = (tables or NewTables()).given
    labels, names = (
        given.get(key) or (edition.path(name) if name else None)
        for key, name in (("labels", params.dataset.labels), ("names", params.dataset.names))
    )
    images = edition.path(params.dataset.images)
    pinned = read_pinned(edition.images_sha256)
    moved = moved_images(images, read_labels(labels)[0], pinned) if labels else {}
    found = read_images(images, labels, names, classes_are_folders=params.dataset.classes_are_folders, moved=moved)
    old = read_old_reviews(edition.folder, found.classes) if is_there(edition.classes) else None
    digests = digests_of(found.locations)
    check_none_empty(found)
    differs = difference(pinned, digests)
    # with nothing new there is nothing to search
    is_searched = bool(differs or given)
    duplicates = search(found, digests, refused=f"{edition.folder / 'data'}/") if is_searched else None
    to = NewImages(found, digests, renamed or RenamedClasses())
    to.check(old)
    brought = {role: model for role, model in params.models.items() if model.source == "scores"}
    file = edition.path(next((str(model.file) for model in brought.values()), ""))
    table = None
    if brought and (differs or scores is not None):
        table = _new_scores(scores, file, brought, found, differs=differs)
    said = [differs or "no image has changed"]
    if old is not None and old.reviewed:
        said.append(keep_what_holds(old, to))
    # in this order the same command finishes what a kill has left: scores are new until params.yaml has their digest
    if table is not None:
        write_bytes(file, table)
    contents = {key: read_bytes(path) for key, path in given.items()}
    if moved and labels is not None:
        contents["labels"] = labels_text(found).encode()
        said.append(f"{labels}: {len(moved):,} images were renamed; the edition's table has the new names")
    for key, bytes_of_table in contents.items():
        said += _bring_table(edition, key, bytes_of_table, given.get(key))
    if duplicates is not None:
        duplicates.write(edition.folder / DUPLICATES)
    write_text(edition.images_sha256, pinned_text(digests))
    if table is not None:
        pin_models(edition.folder, {role: {"sha256": sha256(table)} for role in brought})
    return "\n".join([*said, *_bring_about(edition, about, card)])


def _bring_about(edition: Edition, about: About | None, card: Path | None) -> list[str]:
    """Write the facts of a card.yaml into params.yaml, if there is one; return a line on it."""
    if about is None:
        return []
    text = read_text(edition.params_yaml, "save it as UTF-8")
    content: Any = parse_yaml(text, "params.yaml")
    content["export"]["about"] = about.model_dump(exclude_unset=True)
    write_text(edition.params_yaml, edited_text(text, content, "params.yaml"))
    return [f"{card}: copied to export.about of params.yaml; dvc repro writes it into the set"]


def _bring_table(edition: Edition, key: str, table: bytes, given: Path | None) -> list[str]:
    """Write a table into the edition, and let params.yaml and the pipelines name it; return a line on a `given` one.

    In this order the same command finishes what a kill has left: a table that params.yaml does not name is not read,
    and one that dvc.yaml does not name is refused.
    """
    text = read_text(edition.params_yaml, "save it as UTF-8")
    content: Any = parse_yaml(text, "params.yaml")
    name = content["dataset"].get(key) or f"{key}{given.suffix if given else '.csv'}"
    write_bytes(edition.path(name), table)
    if given is None:
        return []
    content["dataset"][key] = name
    pipeline = read_text(edition.dvc_yaml, "save it as UTF-8")
    stages: Any = parse_yaml(pipeline, "dvc.yaml")
    with_table(stages, name)
    try:
        of_params = edited_text(text, content, "params.yaml")
        of_stages = edited_text(pipeline, stages, "dvc.yaml")
    except LayoutError:
        raise CleansetError(
            f"{edition.folder}: params.yaml or dvc.yaml was reformatted since cleanset edition wrote it; expected "
            f"dataset.{key}: {name}, and {name} in the deps of preprocess: enter both by hand"
        ) from None
    write_text(edition.params_yaml, of_params)
    write_text(edition.dvc_yaml, of_stages)
    training = edition.folder / TRAINING
    if key == "labels" and is_there(training / "params.yaml"):
        of_training = training_with_labels(read_text(training / "params.yaml", "save it as UTF-8"), name)
        if of_training is not None:
            before = read_text(training / "dvc.yaml", "save it as UTF-8")
            write_text(training / "dvc.yaml", before.replace(OF_TRAINING, f"{OF_TRAINING}      - ${{data.labels}}\n"))
            write_text(training / "params.yaml", of_training)
    return [f"{given}: copied to {name}, which dataset.{key} of params.yaml and the deps of preprocess name"]


def _new_scores(
    scores: Path | None, file: Path, models: Mapping[str, Model], found: LabelledImages, *, differs: str
) -> bytes:
    """The bytes of a new table of scores. Raises CleansetError if it is missing, or the one brought, `file`."""
    pinned = {model.sha256 or sha256_of(file) for model in models.values()}
    if scores is None or (differs and sha256_of(scores) in pinned):
        raise CleansetError(
            f"{scores or file}: scores of earlier images, {differs}; expected scores of today's images: "
            "run cleanset edition --accept --scores FILE with a new table"
        )
    for model in models.values():
        read_scores(scores, model.name, found.labels, found.classes)
    return read_bytes(scores)
