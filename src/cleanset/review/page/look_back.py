"""A reviewer's own last verdicts, which are over the class, and their filters: hasty, in conflict, and others."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from cleanset.images.boxes import known_box
from cleanset.review.page.session import Session
from cleanset.review.store import BOARD
from cleanset.review.verdicts import ImageKey, Review, Unsure
from cleanset.selection.fill import Decision

SHOWN = 50
"""Verdicts shown at first, and added by each press of `m`."""

HASTY_SECONDS = 1.0

FILTER_ALL = "all"
HASTY = "decided in under a second"
IN_CONFLICT = "in conflict"
DIFFERS = "differs from the consensus"


@dataclass(frozen=True, slots=True)
class PastVerdict:
    """One of a reviewer's own verdicts. `seconds` as `RecentVerdicts.seconds` gives them."""

    key: ImageKey
    review: Review
    seconds: float | None

    @property
    def is_hasty(self) -> bool:
        """Whether it took less than HASTY_SECONDS, as far as is known."""
        return self.seconds is not None and self.seconds < HASTY_SECONDS


@dataclass
class LookBack:
    """The verdicts on the screen, and the filters of them."""

    session: Session
    chosen: str = FILTER_ALL
    """The name of the filter."""

    focus: ImageKey | None = None
    """The verdict in focus; None if none is shown."""

    limit: int = SHOWN
    """Number of verdicts shown at most."""

    matching: dict[str, list[PastVerdict]] = field(default_factory=dict)
    """The verdicts that match each filter, as of the last `refresh`."""

    def refresh(self) -> None:
        """Find this reviewer's verdicts as last read, and the matches of each filter, without empty ones."""
        verdicts = _own_verdicts(self.session)
        groups: dict[str, list[PastVerdict]] = {FILTER_ALL: verdicts, HASTY: [], IN_CONFLICT: [], DIFFERS: []}
        hints = {index: self.session.kinds_of_hints(index) for index in {each.key[0] for each in verdicts}}
        for each in verdicts:
            for name in _filters(self.session, each, hints):
                groups.setdefault(name, []).append(each)
        first = (FILTER_ALL, HASTY, IN_CONFLICT, DIFFERS)
        in_order = (*first, *sorted(groups.keys() - first))
        self.matching = {name: groups[name] for name in in_order if groups[name] or name == FILTER_ALL}
        self.choose(self.chosen if self.chosen in self.matching else FILTER_ALL)

    def shown(self) -> list[PastVerdict]:
        """The verdicts on the screen, the newest first."""
        return self.matching[self.chosen][: self.limit]

    def choose(self, name: str | None) -> None:
        """Show the verdicts that match a filter; ignored for an unknown one."""
        if name in self.matching:
            if name != self.chosen:
                self.limit = SHOWN
            self.chosen = name
        keys = [each.key for each in self.shown()]
        if self.focus not in keys:
            self.focus = keys[0] if keys else None

    def step(self, by: int) -> None:
        """Show the verdicts of a filter further on in the list."""
        names = list(self.matching)
        self.choose(names[(names.index(self.chosen) + by) % len(names)])

    def move(self, by: int) -> None:
        """Focus another verdict; stops at the first and the last."""
        keys = [each.key for each in self.shown()]
        if self.focus in keys:
            self.focus = keys[max(0, min(len(keys) - 1, keys.index(self.focus) + by))]

    def focus_on(self, key: ImageKey) -> None:
        """Focus a verdict that is shown."""
        if any(each.key == key for each in self.shown()):
            self.focus = key

    def show_more(self) -> None:
        """Show further verdicts that match."""
        self.limit += SHOWN


def _own_verdicts(session: Session) -> list[PastVerdict]:
    """This reviewer's verdicts: first those of this session, newest first, then by the time of the file and by
    class."""
    reviews = {
        (class_index, image_id): review
        for class_index, status in session.statuses.items()
        for image_id, review in status.own.items()
        if image_id in session.library.images
    }
    by_file = sorted(reviews, key=lambda key: (-session.stored.changed_at(session.reviewer, key[0]), key))
    return [
        PastVerdict(key, reviews[key], session.state.recent.seconds(key))
        for key in session.state.recent.newest_first(by_file)
    ]


def _filters(
    session: Session, verdict: PastVerdict, hints: Mapping[int, Mapping[str, Collection[str]]]
) -> Iterator[str]:
    """The names of the filters that a verdict matches, other than FILTER_ALL."""
    class_index, image_id = verdict.key
    status = session.statuses[class_index]
    if verdict.is_hasty:
        yield HASTY
    if image_id in status.conflicts:
        yield IN_CONFLICT
    decision = status.decisions.get(image_id)
    if decision is not None and differs(verdict.review, decision, session.library.params.review.box_tolerance):
        yield DIFFERS
    yield f"verdict: {verdict.review.verdict.kind}"
    if verdict.review.reason:
        yield f"reason: {verdict.review.reason}"
    by_role = session.library.by_class[class_index]
    for role, candidates in by_role.items():
        if len(by_role) > 1 and any(candidate.image_id == image_id for candidate in candidates):
            yield f"model: {role}"
    for reviewer in status.votes[verdict.key]:
        if session.others == "shown" and reviewer not in (session.reviewer, BOARD):
            yield f"reviewer: {reviewer}"
    for kind in sorted(hints[class_index].get(image_id, ())):
        yield f"hint: {kind}"


def differs(review: Review, decision: Decision, box_tolerance: float) -> bool:
    """Whether the decision on an image differs from a reviewer's verdict; False while it is undecided."""
    if decision.verdict == "undecided":
        return False
    if isinstance(review.verdict, Unsure):
        return decision.reason != "unsure"
    if review.verdict.kind != decision.verdict:
        return True
    drawn = known_box(review.box)
    decided = known_box(decision.box)
    if drawn is None or decided is None:
        return False
    left, top, right, bottom = decided
    limit = box_tolerance * min(right - left, bottom - top)
    return max(abs(a - b) for a, b in zip(drawn, decided, strict=True)) > limit
