"""Gold items among the candidates of a session.

A gold item is shown in the place of a candidate, asked for and saved as any image, and decides nothing. A class with a
gold item continues as if the item were one of its candidates: if a reviewer calls it clean, one image less is asked,
if they reject it, the next one. Only when nothing else is asked of the reviewer any more do its classes continue
without it. So nothing reveals during the review which images were gold items.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.images.codec import Read, decode
from cleanset.plumbing.files import read_bytes, sha256
from cleanset.review.audit_files import judged_elsewhere
from cleanset.review.gold import GoldItem, GoldKey, chosen_golds, is_gold_answer, number_of_golds, place_among
from cleanset.review.gold_files import gold_file
from cleanset.review.page.library import IndexedImage, Library, background_hints
from cleanset.review.page.session import Session, SessionState
from cleanset.review.queue import ByRole, Candidate
from cleanset.review.store import BOARD
from cleanset.selection.rule import most_images
from cleanset.web.images import Photos


def with_golds(edition: Edition, session: Session) -> Session:
    """A session with gold items among its candidates, in place of one whose classes are all read.

    The same session where params.yaml asks for none, where its classes have none, and for the board. Raises
    CleansetError for an image of an item that is missing or was changed.
    """
    policy = session.library.params.review.gold
    golds = {key: item for key, item in session.all_golds.items() if key[0] in session.library.by_class}
    if policy is None or not golds or session.reviewer == BOARD:
        return session
    chosen = _chosen(edition, session, golds, policy.share)
    library = gold_library(session.library, chosen, edition.path(policy.folder))
    session.hints.close()
    mixed = replace(
        session,
        library=library,
        hints=background_hints(library),
        golds={item.key: item for item in chosen},
        plain=session.library.by_class,
        # an image without others' verdicts would be an item
        others="counted" if session.others == "shown" else session.others,
        state=SessionState(),
    )
    mixed.refresh()
    return mixed


def _chosen(edition: Edition, session: Session, golds: GoldKey, share: float) -> list[GoldItem]:
    """The items of a session: those that its reviewer has answered, and others up to the share of its images."""
    own = {(index, image_id) for index, status in session.statuses.items() for image_id in status.own}
    answered = {
        key
        for status in session.statuses.values()
        for key, by_reviewer in (status.read or {}).items()
        if session.reviewer in by_reviewer and is_gold_answer(by_reviewer[session.reviewer], key, golds)
    }
    elsewhere = judged_elsewhere(
        edition.reviews, session.reviewer, None if session.task == "audit" else answered, session.library.classes
    )
    open_classes = [index for index, status in session.statuses.items() if status.questions]
    certain = [
        (index, question.image_id)
        for index, status in session.statuses.items()
        for question in status.questions
        if question.certain
    ]
    # the image of an item that is asked for itself would be seen twice
    known = own | elsewhere | golds.keys() & set(certain)
    wanted = number_of_golds(share, len(own) + len(certain))
    return chosen_golds(golds, known - answered, open_classes, answered, wanted=wanted)


def gold_library(library: Library, items: Sequence[GoldItem], folder: Path) -> Library:
    """The library with gold items among its candidates, and their bytes in place of their images'."""
    images = {item.image_id: _indexed(item, folder) for item in items}
    by_class = dict(library.by_class)
    most = most_images(library.params.export.images_per_class)
    for item in items:
        by_class[item.class_index] = _inserted(by_class[item.class_index], item, most)
    photos = Photos(_reading(library.photos.read, items, folder))
    return replace(library, by_class=by_class, images={**library.images, **images}, photos=photos)


def _indexed(item: GoldItem, folder: Path) -> IndexedImage:
    image = decode(_read_item(item, folder))
    return IndexedImage(
        image_id=item.image_id,
        sha256=item.sha256,
        width=image.width,
        height=image.height,
        real_classes=(item.class_index,),
    )


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


def _inserted(by_role: ByRole, item: GoldItem, most: float) -> dict[str, list[Candidate]]:
    """The candidates of a class with a gold item at one of the first `most` places.

    For each model that has the item's image among its candidates: it leaves its own place, and those between the two
    move by one. For an audit, whose draws do not have it, one place further on than another.
    """
    found = {}
    is_candidate = any(each.image_id == item.image_id for candidates in by_role.values() for each in candidates)
    for role, candidates in by_role.items():
        others = [each for each in candidates if each.image_id != item.image_id]
        place = place_among(item, role, int(min(most, len(others))))
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
    """The other candidates with an image at `place`, each with the tier and rank of its new place."""
    # a confidence between those of its neighbours: their order stays
    behind = others[place].confidence if others else 0.0
    before = others[place - 1].confidence if place else 1.0
    moved = [
        *others[:place],
        replace(candidates[0], image_id=image_id, confidence=(behind + before) / 2),
        *others[place:],
    ]
    return [replace(each, tier=here.tier, rank=here.rank) for each, here in zip(moved, candidates, strict=True)]
