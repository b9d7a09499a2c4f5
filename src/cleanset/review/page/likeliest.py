"""The reason for which a key without one rejects an image: the likeliest."""

from collections import Counter
from collections.abc import Collection, Sequence

from cleanset.review.page.session import ReviewerClassStatus, Session
from cleanset.review.verdicts import Rejected
from cleanset.vocabulary import REASONS, Reason

# further reasons that a kind of hint stands for: a line near an edge is read as text, and may be a watermark
ALSO_HINTED = {"text": ("watermark",)}


def likeliest_reason(
    hinted: Collection[str], in_class: Counter[str], overall: Counter[str], reasons: Sequence[Reason] = REASONS
) -> Reason:
    """The most frequent of the reasons hinted at, else of those given in the class, else of all given so far.

    `hinted`: kinds of hints at the image; `in_class`, `overall`: how often each reason was given. Ties go to the one
    that is more frequent overall, then to the first of `reasons`.
    """
    # few pixels are left out: in an edition of small images they would hide all others
    names = {name for kind in hinted for name in (kind, *ALSO_HINTED.get(kind, ()))}
    known = [reason for reason in reasons if reason in names]
    among = known or [reason for reason in reasons if reason in in_class] or reasons
    return min(among, key=lambda reason: (-in_class[reason], -overall[reason], reasons.index(reason)))


class LikeliestReasons:
    """The likeliest reasons for images, from the hints at them and the rejections of a session's reviewer."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._counted: dict[int, tuple[ReviewerClassStatus, Counter[str]]] = {}
        self._overall: Counter[str] = Counter()

    def of(self, class_index: int, image_ids: Collection[str]) -> dict[str, Reason]:
        """The likeliest reason by image id, for images of a class."""
        self._count()
        in_class = self._counted[class_index][1]
        hints = self._session.hints.of(image_ids)
        reasons = tuple(self._session.library.reasons)
        return {
            image_id: likeliest_reason(
                {hint.kind for hint in hints.get(image_id, ())}, in_class, self._overall, reasons
            )
            for image_id in image_ids
        }

    def _count(self) -> None:
        """Count the reasons again in the classes that have changed, for this is done at every step."""
        for index, status in self._session.statuses.items():
            before = self._counted.get(index)
            if before is None or before[0] is not status:
                counts = Counter[str](
                    each.verdict.reason for each in status.own.values() if isinstance(each.verdict, Rejected)
                )
                self._overall.subtract(before[1] if before else ())
                self._overall.update(counts)
                self._counted[index] = status, counts
