"""The session of an auditor: the review page with the draws of an audit in place of the review queue."""

from dataclasses import dataclass, replace

import pandas as pd

from cleanset.dataset.ilsvrc import wnids
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.images.boxes import Box
from cleanset.images.codec import Read, cropped, png
from cleanset.review.audit import AuditPlan, SetImage
from cleanset.review.audit_files import draws_of_auditor
from cleanset.review.queue import ByRole, Question
from cleanset.review.store import Votes
from cleanset.review_page.library import IndexedImage, Library
from cleanset.review_page.session import ReviewerClassStatus, Session
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
        photos=Photos(_reading(library.photos.read, boxes), ("JPEG", "PNG")),
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


def _reading(read: Read, boxes: dict[str, Box]) -> Read:
    """Read an image as it is delivered."""

    def delivered(image_id: str) -> bytes:
        data, box = read(image_id), boxes.get(image_id)
        return data if box is None else png(cropped(data, box))

    return delivered
