"""All the rest of a class as clean: which of its images one key takes, and which it leaves."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from cleanset.review_page.cursor import Cursor

MIN_PIXELS = 160
"""Width on the screen, in CSS pixels, from which an image can be taken as clean with others."""


@dataclass(frozen=True, slots=True)
class Rest:
    """The images of the queue in a class that has no verdict yet, by what one key does with them.

    `clean`: taken as clean. `judged`: somebody's verdict on it is not clean, or it is to be cropped. `unseen`: it was
    not on the screen, whole and wide enough, for as long as it must be. `late`: it was not among the cards when the key
    was pressed. `early`: a key meant to reject it came too early to count.
    """

    clean: tuple[str, ...]
    judged: tuple[str, ...]
    unseen: tuple[str, ...]
    late: tuple[str, ...]
    early: tuple[str, ...]


def rest_of_class(
    cursor: Cursor,
    seconds: Mapping[str, float],
    min_seconds: float,
    shown: Collection[str],
    early: Collection[str],
) -> Rest:
    """The images that one key takes as clean, and those that it leaves, in the order of the cards.

    `seconds`: by image id, for how long the reviewer had an image before them. One that was never whole on the screen
    is not in it, so that it is left even where `min_seconds` is 0. `shown`: image ids of the cards when the key was
    pressed. `early`: image ids that a key came too early for.
    """
    found: dict[str, list[str]] = {"clean": [], "judged": [], "unseen": [], "late": [], "early": []}
    for image_id in cursor.queued():
        votes = cursor.status.votes.get((cursor.class_index, image_id), {})
        if image_id in cursor.boxes_asked() or any(vote.review.verdict != "clean" for vote in votes.values()):
            found["judged"].append(image_id)
        elif image_id in early:
            found["early"].append(image_id)
        elif seconds.get(image_id, -1.0) >= min_seconds:
            found["clean"].append(image_id)
        elif image_id not in shown:
            found["late"].append(image_id)
        else:
            found["unseen"].append(image_id)
    return Rest(**{name: tuple(image_ids) for name, image_ids in found.items()})


def rest_in_words(rest: Rest, shown: Sequence[str]) -> str:
    """A notice on what was taken and what is left, by the numbers of the cards; `shown`: their image ids, in order."""
    parts = [f"{len(rest.clean)} {'image is' if len(rest.clean) == 1 else 'images are'} clean."] if rest.clean else []
    if rest.judged:
        parts.append(f"Left: {_cards(rest.judged, shown)}, to be decided on by itself.")
    if rest.early:
        parts.append(f"Left: {_cards(rest.early, shown)}, a key for it came too early: decide on it, or press a again.")
    if rest.unseen:
        parts.append(
            f"Left: {_cards(rest.unseen, shown)}, not whole on the screen or under {MIN_PIXELS} pixels wide: "
            "scroll there or enlarge the window, and press a again."
        )
    if rest.late:
        parts.append(
            f"Left: {_cards(rest.late, shown)}, shown only after the key was pressed: look, and press a again."
        )
    return " ".join(parts)


def _cards(image_ids: Sequence[str], shown: Sequence[str]) -> str:
    numbers = [str(shown.index(image_id) + 1) for image_id in image_ids]
    return f"{'card' if len(numbers) == 1 else 'cards'} {', '.join(numbers)}"
