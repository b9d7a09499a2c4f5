"""The session of an auditor: the review page with the draws of an audit in place of the review queue.

Gold items in a session: shown in the place of a candidate, asked for and saved as any image, deciding nothing.

A class with a gold item goes on as if the item were one of its candidates: who calls it clean is asked for one image
less, who rejects it for the next one. Only when nothing else is asked of the reviewer any more do its classes go on
without it. So nothing tells during the review which images were gold items.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

import pandas as pd

from cleanset.dataset.ilsvrc import wnids
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.files import read_bytes, sha256
from cleanset.images.boxes import Box
from cleanset.images.codec import Read, cropped, decode, png
from cleanset.review.audit import AuditPlan, SetImage, draws_of_auditor, judged_elsewhere
from cleanset.review.gold import (
    GoldItem,
    GoldKey,
    Key,
    chosen_golds,
    is_gold_answer,
    number_of_golds,
    place_among,
    without_golds,
)
from cleanset.review.hints.background import BackgroundHints, usual_text_cache
from cleanset.review.page.library import IndexedImage, Library
from cleanset.review.page.session import ReviewerClassStatus, Session
from cleanset.review.queue import ByRole, Candidate, Question
from cleanset.review.save import VerdictChange
from cleanset.review.store import BOARD, Votes
from cleanset.web.images import Photos


@dataclass
class AuditSession(Session):
    """An auditor's session: each image is asked for once, of one auditor, and others' verdicts are not shown."""

    def _status_of(self, class_index: int, votes: Votes) -> ReviewerClassStatus:
        (by_role,) = self.library.classes[class_index].items()
        role, candidates = by_role
        own = {
            key: {self.reviewer: by_auditor[self.reviewer]}
            for key, by_auditor in votes.items()
            if self.reviewer in by_auditor
        }
        asked = [each for each in candidates if (class_index, each.image_id) not in votes]
        questions = tuple(Question(each.image_id, {role: each}, certain=True) for each in asked)
        kept = {role: len(candidates) - len(asked)}
        # compared by identity: see Session._read_status
        shown = votes if own == votes else own
        return ReviewerClassStatus(shown, questions, "open" if asked else "settled", kept)


def audit_library(edition: Edition, library: Library, plan: AuditPlan, auditor: str) -> Library:
    """The images that one auditor looks at, as they are delivered, in place of the candidates.

    Raises CleansetError for the board, and where nothing is left for this auditor.
    """
    draws = draws_of_auditor(edition.reviews, plan, auditor)
    boxes = {each.image_id: each.crop for each in draws if each.crop is not None}
    images = {each.image_id: _delivered(library, each) for each in draws}
    rows = library.index[library.index["image_id"].isin(set(images))]
    return replace(
        library,
        params=library.params.model_copy(update={"models": {plan.model: library.params.models[plan.model]}}),
        index=_with_sizes(rows, images),
        names={index: library.names[index] for index in sorted({each.class_index for each in draws})},
        classes=_classes(library, plan.model, draws),
        images=images,
        photos=Photos(_audit_reading(library.photos.read, boxes), ("JPEG", "PNG")),
        seen_by={role: each for role, each in library.seen_by.items() if role == plan.model},
    )


def _delivered(library: Library, image: SetImage) -> IndexedImage:
    source = library.images.get(image.image_id)
    if source is None:
        raise CleansetError(
            f"audit: {image.image_id} of class {wnids()[image.class_index]}: not among the candidates of this edition "
            "any more; expected the edition in which the audit was drawn"
        )
    if image.crop is None:
        return source
    left, top, right, bottom = image.crop
    return replace(source, width=right - left, height=bottom - top)


def _with_sizes(rows: pd.DataFrame, images: dict[str, IndexedImage]) -> pd.DataFrame:
    ids = rows["image_id"].tolist()
    return rows.assign(width=[images[name].width for name in ids], height=[images[name].height for name in ids])


def _classes(library: Library, role: str, draws: list[SetImage]) -> dict[int, ByRole]:
    """The draws by class, as the model ranks them."""
    drawn = {(each.class_index, each.image_id) for each in draws}
    found: dict[int, ByRole] = {}
    for class_index in sorted({each.class_index for each in draws}):
        of_class = library.classes[class_index][role]
        found[class_index] = {role: [each for each in of_class if (class_index, each.image_id) in drawn]}
    return found


def _audit_reading(read: Read, boxes: dict[str, Box]) -> Read:
    """Read an image as it is delivered."""

    def delivered(image_id: str) -> bytes:
        data, box = read(image_id), boxes.get(image_id)
        return data if box is None else png(cropped(data, box))

    return delivered


def with_golds(edition: Edition, session: Session, golds: GoldKey) -> Session:
    """The session with its gold items, once every class is read; the same one where there are none.

    Raises CleansetError for an image of an item that is missing or was changed.
    """
    policy = session.library.params.review.gold
    golds = {key: item for key, item in golds.items() if key[0] in session.library.classes}
    if policy is None or not golds or session.reviewer == BOARD:
        return session
    own = {
        key for status in session.statuses.values() for key, each in status.votes.items() if session.reviewer in each
    }
    answered = _answered(session, golds)
    is_audit = isinstance(session, AuditSession)
    elsewhere = judged_elsewhere(edition.reviews, session.reviewer, None if is_audit else answered)
    open_classes = [index for index, status in session.statuses.items() if status.questions]
    asked = sum(question.certain for status in session.statuses.values() for question in status.questions)
    wanted = number_of_golds(policy.share, len(own) + asked)
    known = own | elsewhere | _shown(session, golds)
    chosen = chosen_golds(golds, known - answered, open_classes, answered, wanted)
    library = gold_library(session.library, chosen, edition.path(policy.folder))
    values = {each.name: getattr(session, each.name) for each in fields(Session)}
    changed = {"library": library, "hints": BackgroundHints(library.photos.read, usual_text_cache()), "statuses": {}}
    kind = GoldAuditSession if is_audit else GoldSession
    mixed: Session = kind(
        **values | changed, plain=session.library, golds={item.key: item for item in chosen}, all_golds=golds
    )
    session.hints.close()
    mixed.refresh()
    return mixed


def _answered(session: Session, golds: GoldKey) -> set[Key]:
    """The gold items that the reviewer has answered here. From now on the votes have answers to gold items."""
    session.stored.mixed = True
    found = set()
    for class_index in {class_index for class_index, _ in golds}:
        if not session.statuses[class_index].broken:
            votes = session.stored.of_class(class_index)
            found |= {
                key
                for key, by_reviewer in votes.items()
                if session.reviewer in by_reviewer and is_gold_answer(by_reviewer[session.reviewer], key, golds)
            }
    return found


def _shown(session: Session, golds: GoldKey) -> set[Key]:
    """The images of gold items that are asked for themselves: they would be seen twice."""
    return {
        (class_index, question.image_id)
        for class_index, status in session.statuses.items()
        for question in status.questions
        if question.certain and (class_index, question.image_id) in golds
    }


@dataclass
class GoldSession(Session):
    """A session with gold items. `plain`: the library without them; `golds`: those of this session.

    `counting`: the items count like other images; no more once nothing else is asked.
    """

    plain: Library = None  # type: ignore[assignment]  # a field after those with defaults
    golds: Mapping[Key, GoldItem] = field(default_factory=dict)
    all_golds: GoldKey = field(default_factory=dict)
    counting: bool = True

    def refresh(self, classes: Iterable[int] | None = None) -> None:
        """Read as Session does, and stop counting the gold items once nothing else is asked."""
        super().refresh(classes)
        self._end_counting()

    def save_verdicts(self, class_index: int, changes: Mapping[str, VerdictChange]) -> None:
        """Write verdicts as Session does; the last one may bring back the classes that had a gold item."""
        super().save_verdicts(class_index, changes)
        self._end_counting()

    def _end_counting(self) -> None:
        if self.counting and not self.unsettled():
            self.counting = False
            with_one = {class_index for class_index, _ in self.golds}
            self.statuses |= {index: self._read_status(index, None) for index in with_one}

    @property
    def shows_others(self) -> bool:
        """Whether others' verdicts are shown: never, as an image without one would be a gold item."""
        return False

    def candidates_asked(self, class_index: int) -> ByRole:
        """The candidates of a class that questions come from."""
        if self.counting:
            return self.library.classes[class_index]
        # never the image of an item: this reviewer has its answer under the same id
        return {
            role: [each for each in candidates if (class_index, each.image_id) not in self.golds]
            for role, candidates in self.plain.classes[class_index].items()
        }

    def _status_of(self, class_index: int, votes: Votes) -> ReviewerClassStatus:
        shown = self._votes_shown(votes)
        status = super()._status_of(class_index, shown if self.counting else without_golds(shown, self.all_golds))
        return replace(status, votes=shown)

    def _votes_shown(self, votes: Votes) -> Votes:
        """The votes as this reviewer sees them: of a gold item their own answer alone, else those on the image."""
        mine = {key: votes[key][self.reviewer] for key in self.golds if self.reviewer in votes.get(key, {})}
        kept = without_golds(votes, self.all_golds)
        if not any(key in votes for key in self.golds):
            return kept
        others = {key: by_reviewer for key, by_reviewer in kept.items() if key not in self.golds}
        return others | {key: {self.reviewer: vote} for key, vote in mine.items()}


@dataclass
class GoldAuditSession(GoldSession, AuditSession):
    """An auditor's session with gold items, each of which is asked for like a draw."""

    def _end_counting(self) -> None:
        """Change nothing: each gold item is looked at once, like each draw, whatever is found."""


def gold_library(library: Library, items: Sequence[GoldItem], folder: Path) -> Library:
    """The library with gold items among its candidates, and their bytes in place of those of their images."""
    images = {item.image_id: _indexed(item, folder) for item in items}
    classes = dict(library.classes)
    for item in items:
        classes[item.class_index] = _inserted(classes[item.class_index], item, library.params.export.images_per_class)
    photos = Photos(_reading(library.photos.read, items, folder), ("JPEG", "PNG"))
    return replace(library, classes=classes, images={**library.images, **images}, photos=photos)


def _indexed(item: GoldItem, folder: Path) -> IndexedImage:
    image = decode(_read_item(item, folder))
    return IndexedImage(item.image_id, item.sha256, image.width, image.height)


def gold_file(folder: Path, image_id: str) -> Path:
    """The file of a gold item."""
    return folder / f"{image_id}.JPEG"


def _read_item(item: GoldItem, folder: Path) -> bytes:
    path = gold_file(folder, item.image_id)
    if not path.is_file():
        raise CleansetError(
            f"{path}: missing; expected the image of a gold item: cleanset review gold {folder} makes it again"
        )
    data = read_bytes(path)
    if sha256(data) != item.sha256:
        raise CleansetError(
            f"{path}: SHA-256 {sha256(data)}; expected {item.sha256}, as in reviews/gold.csv: restore the file"
        )
    return data


def _reading(read: Read, items: Sequence[GoldItem], folder: Path) -> Read:
    by_id = {item.image_id: item for item in items}
    return lambda image_id: _read_item(by_id[image_id], folder) if image_id in by_id else read(image_id)


def _inserted(by_role: ByRole, item: GoldItem, places: int) -> dict[str, list[Candidate]]:
    """The candidates of a class with a gold item at one of the first places.

    For each model that has the item's image among its candidates: it leaves its own place, and those between the two
    move by one. For an audit, whose draws do not have it, one place further on than another.
    """
    found = {}
    is_candidate = any(each.image_id == item.image_id for candidates in by_role.values() for each in candidates)
    for role, candidates in by_role.items():
        others = [each for each in candidates if each.image_id != item.image_id]
        place = place_among(item, role, min(places, len(others)))
        if len(others) < len(candidates):
            found[role] = _moved(candidates, others, item.image_id, place)
        elif is_candidate:
            found[role] = others
        else:
            found[role] = _added(others, item.image_id, place)
    return found


def _added(candidates: list[Candidate], image_id: str, place: int) -> list[Candidate]:
    """The candidates and, behind the one at `place`, an image with the next rank that none of them has."""
    here = candidates[place]
    ranks = {each.rank for each in candidates}
    rank = next(number for number in range(here.rank + 1, here.rank + len(ranks) + 2) if number not in ranks)
    after = candidates[place + 1].confidence if place + 1 < len(candidates) else here.confidence * 0.99
    new = replace(here, image_id=image_id, rank=rank, confidence=(here.confidence + after) / 2)
    return [*candidates[: place + 1], new, *candidates[place + 1 :]]


def _moved(candidates: Sequence[Candidate], others: list[Candidate], image_id: str, place: int) -> list[Candidate]:
    """The other candidates with an image at `place`, each with the tier and rank of its new place.

    The image's confidence lies between its neighbours', so that the order of confidences stays.
    """
    behind = others[place].confidence if others else 0.0
    before = others[place - 1].confidence if place else 1.0
    moved = [
        *others[:place],
        replace(candidates[0], image_id=image_id, confidence=(behind + before) / 2),
        *others[place:],
    ]
    return [replace(each, tier=here.tier, rank=here.rank) for each, here in zip(moved, candidates, strict=True)]
