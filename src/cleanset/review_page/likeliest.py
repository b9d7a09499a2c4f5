"""The likeliest reason to reject an image: what a key that gives no reason rejects it for."""

from collections import Counter
from collections.abc import Collection

from cleanset.review_page.session import Session
from cleanset.vocabulary import REASONS

ALSO_HINTED = {"text": ("watermark",)}
"""Further reasons that a kind of hint stands for: a line near an edge is read as text, and may be a watermark."""


def likeliest_reason(hinted: Collection[str], in_class: Counter[str], overall: Counter[str]) -> str:
    """The most frequent of the reasons hinted at, else of those given in the class, else of all given so far.

    `hinted`: kinds of hints at the image; `in_class`, `overall`: how often each reason was given. Ties go to the one
    that is more frequent overall, then to the first of REASONS.
    """
    known = {reason for kind in hinted for reason in (kind, *ALSO_HINTED.get(kind, ()))}
    among = known or in_class.keys() or overall.keys() or REASONS
    return min(among, key=lambda reason: (-in_class[reason], -overall[reason], REASONS.index(reason)))


class LikeliestReasons:
    """The likeliest reasons for the images of a class, from the hints at them and one reviewer's rejections."""

    def __init__(self, session: Session, class_index: int) -> None:
        self._hints = session.hints
        self._overall: Counter[str] = Counter()
        for index, status in session.statuses.items():
            own = (votes[session.reviewer].review for votes in status.votes.values() if session.reviewer in votes)
            reasons = Counter(str(review.reason) for review in own if review.verdict == "reject")
            if index == class_index:
                self._in_class = reasons
            self._overall.update(reasons)

    def of(self, image_ids: Collection[str]) -> dict[str, str]:
        """The likeliest reason by image id."""
        hints = self._hints.of(image_ids)
        return {
            image_id: likeliest_reason({hint.kind for hint in hints.get(image_id, ())}, self._in_class, self._overall)
            for image_id in image_ids
        }
