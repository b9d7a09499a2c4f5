"""What the page reads of an edition once: its classes, candidates and images, and how models see them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import quote

from cleanset.classes import ClassTable
from cleanset.edition.lists import unknown_confidences
from cleanset.edition.params import Params, read_params
from cleanset.edition.paths import Edition, verified_images
from cleanset.errors import CleansetError
from cleanset.images.preprocessing import Preprocessing
from cleanset.plumbing.files import is_there
from cleanset.review.decided import candidates_of
from cleanset.review.hints.background import BackgroundHints
from cleanset.review.hints.kinds import HintKind, MeasuredHint, hint_keys, measured_hints
from cleanset.review.hints.text import usual_text_files
from cleanset.review.labels import contradictions_in, opinions_on, studies_of
from cleanset.review.opinions import Opinions
from cleanset.review.queue import ByRole, Candidate, by_image
from cleanset.review.reasons import ReasonEntry, by_key, with_further
from cleanset.scoring.own_code import code_digests
from cleanset.scoring.record import ScoreRecord, read_record
from cleanset.tables import INDEX, read_table
from cleanset.vocabulary import TIERS
from cleanset.web.images import Photos


@dataclass(frozen=True, slots=True)
class IndexedImage:
    """An image of the index; `real_classes`: the classes of its reassessed labels."""

    image_id: str
    sha256: str
    width: int
    height: int
    real_classes: Collection[int] = field(compare=False)

    def url(self, size: str) -> str:
        """The address of a copy of this size: card, small, tile or full."""
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

    hints: Sequence[type[MeasuredHint]]
    """The hints from pixels, those of `review.hints` among them."""

    own_code: str
    """The digests of the code of `review.hints`; empty without any."""

    @property
    def hint_keys(self) -> Mapping[str, HintKind]:
        """The kinds of hints by the key that filters by them."""
        return hint_keys(self.hints)

    @property
    def reasons(self) -> Mapping[str, ReasonEntry]:
        """The usual reasons, then those of `review.reasons`."""
        return with_further(self.params.review.reasons)

    @property
    def reason_keys(self) -> Mapping[str, str]:
        """The reasons by key."""
        return by_key(self.reasons)

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
    """The images whose labels the models contradict, in place of the candidates, and the second opinions on them.

    Each has the rank of its label in the list of all. The opinions are the models' and those of studies of labels.
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
    return checked, opinions_on(found, studies_of(edition, library.classes), library.classes)


def background_hints(library: Library) -> BackgroundHints:
    """The hints on the images of a library; your own are compared across classes, too."""
    classes = library.classes
    names: dict[str, str] = {}
    if not classes.is_imagenet:
        names = {each: classes.names[index].name for index in library.by_class for each in library.candidates(index)}
    from cleanset.review.hints.hints import usual_measure_files

    return BackgroundHints(
        library.photos.read,
        classes,
        names,
        kept_text=usual_text_files(),
        kept_measures=usual_measure_files(classes, own_code=library.own_code),
        hints=library.hints,
    )


def open_library(edition: Edition) -> Library:
    """Read an edition. Raises CleansetError if a table is missing: then `dvc repro` or `dvc pull` is due."""
    params = read_params(edition.folder)
    classes = edition.read_classes()
    table = read_table(edition.index, INDEX, classes)
    columns = (table[name].tolist() for name in ("image_id", "sha256", "width", "height", "real_classes"))
    index = {row[0]: IndexedImage(*row) for row in zip(*columns, strict=True)}
    by_class = candidates_of(edition, params, classes)
    read = verified_images(edition, params.dataset.images, table, classes).read
    names = params.review.hints
    hints = measured_hints(names, "review.hints", edition.folder)
    return Library(
        classes=classes,
        params=params,
        index=index,
        by_class=by_class,
        images=_images(index, by_class.values()),
        photos=Photos(read, as_stored=True),
        seen_by=_seen_by(edition, list(params.models)),
        unknown_confidences=unknown_confidences(edition.folder, params),
        hints=hints,
        own_code=str(code_digests(names, "review.hints", edition.folder)) if names else "",
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
