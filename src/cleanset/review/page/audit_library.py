"""The draws of an audit, as the page shows them in place of the candidates."""

from dataclasses import replace

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.images.boxes import Box
from cleanset.images.codec import Read, cropped, png
from cleanset.review.audit import AuditPlan, SetImage
from cleanset.review.audit_files import draws_of_auditor
from cleanset.review.page.library import IndexedImage, Library
from cleanset.review.queue import ByRole
from cleanset.web.images import Photos


def audit_library(edition: Edition, library: Library, plan: AuditPlan, auditor: str) -> Library:
    """The images that one auditor looks at, as delivered, in place of the candidates.

    Raises CleansetError for the board, and if nothing is left for this auditor.
    """
    draws = draws_of_auditor(edition.reviews, plan, auditor)
    boxes = {each.image_id: each.crop for each in draws if each.crop is not None}
    images = {each.image_id: _delivered(library, each) for each in draws}
    return replace(
        library,
        params=library.params.model_copy(update={"models": {plan.model: library.params.models[plan.model]}}),
        index={**library.index, **images},
        by_class=_by_class(library, plan.model, draws),
        images=images,
        photos=Photos(_audit_reading(library.photos.read, boxes)),
        seen_by={role: each for role, each in library.seen_by.items() if role == plan.model},
    )


def _delivered(library: Library, image: SetImage) -> IndexedImage:
    source = library.images.get(image.image_id)
    if source is None:
        raise CleansetError(
            f"audit: {image.image_id} of class {library.classes.keys[image.class_index]}: not among the candidates of "
            "this edition any more; expected the edition in which the audit was drawn"
        )
    if image.crop is None:
        return source
    left, top, right, bottom = image.crop
    return replace(source, width=right - left, height=bottom - top)


def _by_class(library: Library, role: str, draws: list[SetImage]) -> dict[int, ByRole]:
    """The draws by class, as the model ranks them."""
    drawn = {(each.class_index, each.image_id) for each in draws}
    found: dict[int, ByRole] = {}
    for class_index in sorted({each.class_index for each in draws}):
        of_class = library.by_class[class_index][role]
        found[class_index] = {role: [each for each in of_class if (class_index, each.image_id) in drawn]}
    return found


def _audit_reading(read: Read, boxes: dict[str, Box]) -> Read:
    """Read an image as delivered."""

    def delivered(image_id: str) -> bytes:
        data = read(image_id)
        box = boxes.get(image_id)
        return data if box is None else png(cropped(data, box))

    return delivered
