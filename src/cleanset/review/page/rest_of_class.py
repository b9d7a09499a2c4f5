"""The key for all the rest of a class: which images were in sight for long enough to be clean, and why others stay."""

from collections.abc import Collection, Mapping, Sequence

from cleanset.review.page.cursor import Cursor
from cleanset.review.verdicts import Clean

MIN_WIDTH = 160
MIN_HEIGHT = 120
"""CSS pixels, whose product is the area on the screen from which an image can be taken as clean with others."""

LEFT = {
    "judged": "to be decided on separately.",
    "early": "where a key came too early: decide, or press a again.",
    "unseen": f"not whole on the screen, or smaller than {MIN_WIDTH} × {MIN_HEIGHT} pixels: look, then press a again, "
    "or enlarge the image with Enter and press c.",
    "late": "shown only after the key was pressed: look, then press a again.",
}
"""Why one key for all the rest of a class leaves an image, and the remedy.

`judged`: somebody's verdict on it is not clean, or it is to be cropped. `early`: a key meant to reject it came too
early to count. `unseen`: it was not on the screen, whole and large enough, for as long as it must be. `late`: it was
not among the cards when the key was pressed.
"""


def rest_of_class(
    cursor: Cursor, seconds: Mapping[str, float], shown: Collection[str], early: Collection[str]
) -> dict[str, list[str]]:
    """The images of the queue in a class that has no verdict yet: `clean`, which one key takes, and by reason of LEFT.

    `seconds`: by image id, for how long the reviewer had an image before them. One that was never whole on the screen
    is not in it, so that it is left even where review.seconds_per_image is 0. `shown`: image ids of the cards when the
    key was pressed. `early`: image ids that a key came too early for.
    """
    min_seconds = cursor.session.library.params.review.seconds_per_image
    found: dict[str, list[str]] = {"clean": [], **{reason: [] for reason in LEFT}}
    for image_id in cursor.queued():
        votes = cursor.status.votes.get((cursor.class_index, image_id), {})
        has_other_verdict = any(not isinstance(vote.review.verdict, Clean) for vote in votes.values())
        if has_other_verdict or image_id in cursor.boxes_asked():
            found["judged"].append(image_id)
        elif image_id in early:
            found["early"].append(image_id)
        elif seconds.get(image_id, -1.0) >= min_seconds:
            found["clean"].append(image_id)
        else:
            found["unseen" if image_id in shown else "late"].append(image_id)
    return found


def rest_in_words(rest: Mapping[str, Sequence[str]], shown: Sequence[str]) -> str:
    """A notice on the images taken and left, by the numbers of the cards; `shown`: their image ids, in order."""
    count = len(rest["clean"])
    parts = [f"{count} {'image is' if count == 1 else 'images are'} clean."] if count else []
    for reason, text in LEFT.items():
        numbers = [str(shown.index(image_id) + 1) for image_id in rest[reason]]
        if numbers:
            parts.append(f"Left: {'card' if len(numbers) == 1 else 'cards'} {', '.join(numbers)}, {text}")
    return " ".join(parts)
