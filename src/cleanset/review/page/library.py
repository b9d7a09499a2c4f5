"""The fixed data of a review (classes, candidates, images, preprocessings), and the share of each reviewer.

A share lists the classes that one reviewer is asked for; common classes are asked of all.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import quote

from cleanset.classes import ClassTable, parse_ranges
from cleanset.edition.lists import unknown_confidences
from cleanset.edition.params import Params, ReviewPolicy, read_params
from cleanset.edition.paths import Edition, verified_images
from cleanset.errors import CleansetError
from cleanset.files import is_there
from cleanset.images.preprocessing import Preprocessing
from cleanset.review.decided import candidates_of
from cleanset.review.hints.background import BackgroundHints
from cleanset.review.hints.text_cache import usual_text_cache
from cleanset.review.labels import contradictions_in
from cleanset.review.opinions import Opinions
from cleanset.review.queue import ByRole, Candidate, by_image
from cleanset.review.store import BOARD
from cleanset.scoring.record import ScoreRecord, read_record
from cleanset.tables import INDEX, read_table
from cleanset.validation import shown
from cleanset.vocabulary import TIERS
from cleanset.web.images import Photos


@dataclass(frozen=True, slots=True)
class IndexedImage:
    """An image of the index; `real_classes`: of its reassessed labels."""

    image_id: str
    sha256: str
    width: int
    height: int
    real_classes: Collection[int] = field(compare=False)

    def url(self, size: str) -> str:
        """The address of a copy of this size: card, tile or full."""
        # it changes with the bytes, so that a browser may cache it
        return f"image/{size}/{quote(self.image_id)}?{self.sha256[:16]}"


@dataclass(frozen=True, slots=True)
class Library:
    """An edition, read once by the page."""

    classes: ClassTable
    params: Params
    index: Mapping[str, IndexedImage]
    """All images of the edition, by image id."""

    by_class: Mapping[int, ByRole]
    """The candidates by class index, in order."""

    images: Mapping[str, IndexedImage]
    """The candidates' images, by image id."""

    photos: Photos
    seen_by: Mapping[str, Preprocessing]
    """The preprocessings by role of the model."""

    unknown_confidences: Mapping[str, Collection[str]]
    """By role, the images of a published list whose confidence only orders them."""

    def candidates(self, class_index: int) -> dict[str, dict[str, Candidate]]:
        """Every candidate of a class by image id, with the models that may use it, the most likely first."""
        return by_image(self.by_class[class_index])

    def surest(self, class_index: int, among: Collection[str], count: int) -> list[IndexedImage]:
        """The `count` images of a class, `among` those given, with the highest mean confidence over the models."""
        confidence = {
            image_id: sum(candidate.confidence for candidate in models.values())
            for image_id, models in self.candidates(class_index).items()
            if image_id in among
        }
        surest = sorted(confidence, key=lambda image_id: (-confidence[image_id], image_id))
        return [self.images[image_id] for image_id in surest[:count]]


def label_library(edition: Edition, library: Library) -> tuple[Library, Opinions]:
    """The images whose labels the models contradict, in place of the candidates, and the models' predictions.

    Each has the rank of its label in the list of all.
    """
    found = contradictions_in(edition, library.classes)
    role = "models"
    by_class: dict[int, dict[str, list[Candidate]]] = {index: {role: []} for index in library.by_class}
    for rank, each in enumerate(found, start=1):
        if each.label in by_class:
            by_class[each.label][role].append(Candidate(each.image_id, TIERS[0], rank, each.confidence))
    params = library.params.model_copy(update={"models": dict.fromkeys([role])})  # in place of all
    images = _images(library.index, by_class.values())
    checked = replace(
        library, params=params, by_class=by_class, images=images, seen_by={}, unknown_confidences={role: ()}
    )
    return checked, {each.image_id: (each.opinion(library.classes),) for each in found}


def background_hints(library: Library) -> BackgroundHints:
    """The hints on the images of a library; your own are compared across classes, too."""
    classes = library.classes
    names: dict[str, str] = {}
    if not classes.is_imagenet:
        names = {each: classes.names[index].name for index in library.by_class for each in library.candidates(index)}
    return BackgroundHints(library.photos.read, classes, usual_text_cache(), class_names=names)


def open_library(edition: Edition) -> Library:
    """Read an edition. Raises CleansetError if a table is missing: then `dvc repro` or `dvc pull` is due."""
    params = read_params(edition.folder)
    classes = edition.read_classes()
    table = read_table(edition.index, INDEX, classes)
    columns = (table[name].tolist() for name in ("image_id", "sha256", "width", "height", "real_classes"))
    index = {row[0]: IndexedImage(*row) for row in zip(*columns, strict=True)}
    by_class = candidates_of(edition, params, classes)
    read = verified_images(edition, params.dataset.images, table, classes).read
    return Library(
        classes=classes,
        params=params,
        index=index,
        by_class=by_class,
        images=_images(index, by_class.values()),
        photos=Photos(read, as_stored=True),
        seen_by=_seen_by(edition, list(params.models)),
        unknown_confidences=unknown_confidences(edition.folder, params),
    )


def _images(index: Mapping[str, IndexedImage], candidates: Collection[ByRole]) -> dict[str, IndexedImage]:
    wanted = {each.image_id for by_role in candidates for of_role in by_role.values() for each in of_role}
    missing = sorted(wanted - index.keys())
    if missing:
        raise CleansetError(f"data/candidates: {missing[0]} is not in data/index.parquet: run dvc repro")
    return {image_id: index[image_id] for image_id in wanted}


def _seen_by(edition: Edition, roles: Sequence[str]) -> dict[str, Preprocessing]:
    """The preprocessing with which each model was scored."""
    # from the records, since importing torch would take seconds
    paths = {role: edition.scored_with(role) for role in roles}
    # a model without a record yet, or without a network, has no view; the page works without it
    records = {role: read_record(path) for role, path in paths.items() if is_there(path)}
    return {role: record.preprocessing for role, record in records.items() if isinstance(record, ScoreRecord)}


MAX_PARTS = 1000


@dataclass(frozen=True, slots=True)
class Share:
    """The class indices that one reviewer is asked for; in the classes of `common`, whatever others have found.

    Agreement is measured on the classes of `common`, which every reviewer has.
    """

    classes: frozenset[int]
    common: frozenset[int]


def common_classes(classes: Sequence[int], overlap: float) -> frozenset[int]:
    """The share `overlap` of the classes, evenly spread and rounded down."""
    # of each position: whether the number of common classes so far grows here
    return frozenset(
        class_index
        for position, class_index in enumerate(classes)
        if int((position + 1) * overlap + 1e-9) > int(position * overlap + 1e-9)
    )


def share_of(classes: Sequence[int], text: str, overlap: float, copies: int = 1) -> Share:
    """The share K/N of `classes`, such as 1/3: the common ones, and every N-th of the others from the K-th on.

    `copies`: in how many shares each of the others is, as many as have to review it.
    """
    numbers = re.fullmatch(r"([0-9]{1,4})/([0-9]{1,4})", text)
    part, parts = (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)
    if not 1 <= part <= parts <= MAX_PARTS:
        raise CleansetError(f"--share {shown(text)}: expected K/N with 1 <= K <= N <= {MAX_PARTS:,}, such as 1/3")
    common = common_classes(classes, overlap)
    others = [class_index for class_index in classes if class_index not in common]
    own = (each for position, each in enumerate(others) if (part - 1 - position) % parts < copies)
    return Share(common.union(own), common)


def share_in_team(classes: Sequence[int], reviewer: str, team: Collection[str], review: ReviewPolicy) -> Share:
    """The share of a reviewer in a team: by `review.assign`, or else an equal one, by the order of the names.

    All classes for the board, and for one who reviews alone. Raises CleansetError for a reviewer whom `review.assign`
    does not name.
    """
    assign = review.assign
    overlap = review.overlap
    if reviewer == BOARD or not (assign or team):
        return Share(frozenset(classes), frozenset())
    if not assign:
        members = sorted({*team} - {BOARD})
        return share_of(classes, f"{members.index(reviewer) + 1}/{len(members)}", overlap, review.min_reviewers)
    if reviewer not in assign:
        raise CleansetError(
            f"reviewer {reviewer!r}: not in review.assign of params.yaml; expected one of {', '.join(sorted(assign))}: "
            "correct the name, or add a line"
        )
    common = common_classes(classes, overlap)
    return Share(parse_ranges(assign[reviewer]).intersection(classes) | common, common)
