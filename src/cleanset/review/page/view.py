"""The HTML of a tab, rendered from templates that escape everything."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING

from jinja2 import Environment

from cleanset.classes import ClassTable
from cleanset.images.boxes import UNKNOWN_BOX, Crop, known_box
from cleanset.review.opinions import Opinion
from cleanset.review.page.actions import (
    BY_KEYS,
    ENTRIES,
    FILTERS,
    HELP_SECTIONS,
    MOST_USED,
    ZOOM_LABELS,
    Action,
    HelpSection,
    help_lines,
)
from cleanset.review.page.cursor import Cursor
from cleanset.review.page.library import IndexedImage, Library
from cleanset.review.page.look_back import SHOWN
from cleanset.review.page.pace import in_words
from cleanset.review.page.rest_of_class import MIN_HEIGHT, MIN_WIDTH
from cleanset.review.page.session import Session
from cleanset.review.page.tab import Tab
from cleanset.review.queue import Candidate, Question
from cleanset.review.store import BOARD
from cleanset.review.verdicts import Review
from cleanset.selection.crop_check import is_misclassified
from cleanset.vocabulary import NO_TIER
from cleanset.web import MIN_SHOWN_SECONDS
from cleanset.web.pages import html_templates

if TYPE_CHECKING:
    from cleanset.review.hints.hints import Hint

MAX_EXAMPLES = 3
MAX_SHORT_NAMED = 20
MAX_LARGE_CARDS = 4
_OVERLAYS = ("crop", "zoom", "help", "back", "guidelines")
# places left free for replacements, so that they come onto the screen without moving an image
_SPARE_PLACES = 2


TIER_WORDS = {NO_TIER: "", "top5": "", "reserve": ", reserve", "relaxed": ", several labels"}
BASIS_WORDS = {"implied": "from a verdict on several images", "default": "kept without objection"}


@dataclass(frozen=True, slots=True)
class Card:
    """An image among those side by side.

    `question`: None for an image that is not asked for; `own`: this reviewer's verdict; `others`: others' verdicts that
    may be shown; `has_joined`: it was not shown when the class was opened; `queued`: needed whatever the other verdicts
    will be; `likeliest`: the reason that a key without one rejects it for, None until all hints at it are known;
    `opinions`: findings of label studies; `misclassified_by`: the models that misclassify the crop.
    """

    number: int
    image: IndexedImage
    models: dict[str, Candidate]
    question: Question | None
    own: Review | None
    others: Sequence[tuple[str, Review]]
    in_focus: bool
    has_joined: bool
    queued: bool
    likeliest: str | None
    hints: "Sequence[Hint]"
    opinions: Sequence[Opinion]
    misclassified_by: Sequence[str]
    unsaved_note: str | None

    @property
    def signs(self) -> dict[str, str]:
        """Hints, then opinions, each kind by the alphabet, and what it rests on."""
        found: dict[str, list[str]] = {}
        for hint in sorted(self.hints, key=lambda hint: hint.kind):
            found.setdefault(hint.kind, []).append(hint.text)
        for opinion in sorted(self.opinions, key=lambda opinion: opinion.flag):
            found.setdefault(opinion.flag, []).append(opinion.source)
        return {sign: "; ".join(texts) for sign, texts in found.items()}


def cards(tab: Tab) -> list[Card]:
    """The images of the class, as the tab shows them."""
    session = tab.session
    status = tab.cursor.status
    models = session.library.candidates(tab.cursor.class_index)
    asked = {question.image_id: question for question in status.questions}
    numbers = {image_id: number for number, image_id in enumerate(tab.cursor.images(), start=1)}
    hints = session.hints.of(numbers)
    complete = session.hints.complete(numbers)
    queued = tab.cursor.queued()
    likeliest = tab.likeliest.of(tab.cursor.class_index, numbers)
    made = []
    for image_id, number in numbers.items():
        votes = status.votes.get((tab.cursor.class_index, image_id), {})
        own = votes[session.reviewer].review if session.reviewer in votes else None
        # others' verdicts must not bias a reviewer who has none yet; the board decides between them
        visible = (own is not None and session.others == "shown") or session.reviewer == BOARD
        others = [(name, vote.review) for name, vote in sorted(votes.items()) if visible and name != session.reviewer]
        made.append(
            Card(
                number=number,
                image=session.library.images[image_id],
                models=models.get(image_id, {}),
                question=asked.get(image_id),
                own=own,
                others=others,
                in_focus=image_id == tab.cursor.focus,
                has_joined=not tab.cursor.every and number > tab.cursor.first_count,
                queued=image_id in queued,
                likeliest=likeliest[image_id] if image_id in complete else None,
                opinions=session.opinions.get(image_id, ()),
                hints=[_with_numbers(hint, numbers) for hint in hints.get(image_id, ())],
                misclassified_by=_misclassified_by(tab, image_id, own),
                unsaved_note=session.state.notes.get((tab.cursor.class_index, image_id)),
            )
        )
    return made


def _with_numbers(hint: "Hint", numbers: Mapping[str, int]) -> "Hint":
    """The hint with the numbers of the cards in place of the ids of their images."""
    ids = "|".join(re.escape(image_id) for image_id in sorted(numbers, key=len, reverse=True))
    text = re.sub(ids, lambda found: f"card {numbers[found[0]]}", hint.text) if ids else hint.text
    return replace(hint, text=text)


def _misclassified_by(tab: Tab, image_id: str, own: Review | None) -> list[str]:
    box = known_box(own.box) if own else None
    if box is None:
        return []
    crop = Crop(image_id, box)
    scores = tab.session.crop_scores
    roles = tab.session.library.params.models
    return [role for role in roles if is_misclassified(crop, tab.cursor.class_index, scores.predictions[role])]


def render(tab: Tab) -> dict[str, str]:
    """The HTML of each part of the page: view, overlay, panel. The tab remembers the verdicts shown."""
    tab.session.refresh_class(tab.cursor.class_index)
    tab.cursor.keep_places()
    shown = cards(tab)
    if tab.draft is None:  # else the cards may be hidden: what changed beneath was not seen
        tab.history.shown = {card.image.image_id: card.own for card in shown}
    overlay = tab.mode if tab.mode in _OVERLAYS else "zoom" if tab.base == "zoom" else None
    if overlay in ("crop", "zoom") and tab.cursor.focus is not None:
        tab.history.opened.add((tab.cursor.class_index, tab.cursor.focus))
    parts = {
        "view": "end.html" if tab.ended else "board.html" if tab.options() else "class.html",
        "overlay": f"{overlay}.html" if overlay else None,
        # next to the image, which would flicker if it were drawn again with every hint
        "panel": {"crop": "crop_panel.html", "zoom": "zoom_panel.html"}.get(overlay or ""),
    }
    content = _content(tab, shown) | {"overlay": overlay}
    return {part: _templates().get_template(name).render(content) if name else "" for part, name in parts.items()}


def note_buttons() -> str:
    """The HTML of the buttons of the dialog for a note."""
    return _templates().get_template("note.html").render()


def _content(tab: Tab, shown: list[Card]) -> dict[str, object]:
    library = tab.session.library
    options = tab.options()
    return {
        "tab": tab,
        "library": library,
        "name": library.classes.names[tab.cursor.class_index],
        "status": tab.cursor.status,
        "options": options,
        "cards": shown,
        "places": _places(tab, len(shown)),
        "card_size": _card_size(tab.cursor),
        "focus": next((card for card in shown if card.in_focus), None),
        "beside": _beside(shown),
        "examples": _examples(tab.cursor),
        "seen_by": _distinct_views(library),
        "progress": _progress(tab),
        "state": tab.session.state_in_words(tab.cursor.class_index),
        "lacking": tab.session.lacking_in_words(tab.cursor.class_index),
        "batch": tab.cursor.batch(),
        "ahead": " ".join(_ahead(tab)),
    }


def _places(tab: Tab, count: int) -> tuple[int, int]:
    """The number of images that the grid is for, and of the replacements that it leaves a place for; `count`: shown."""
    if tab.cursor.every:
        return count, 0
    candidates = len(tab.session.library.candidates(tab.cursor.class_index))
    return tab.cursor.first_count, min(_SPARE_PLACES, candidates - tab.cursor.first_count)


def _card_size(cursor: Cursor) -> str:
    """The size in which the images of a class are sent: the same while it is open, so that none is loaded again."""
    return "card" if (cursor.first_count or len(cursor.images())) <= MAX_LARGE_CARDS else "small"


def _beside(shown: Sequence[Card]) -> Card | None:
    """The card that a hint on the image in focus compares it with, such as a near-duplicate."""
    others = {other for card in shown if card.in_focus for hint in card.hints for other in hint.others}
    return next((card for card in shown if card.image.image_id in others), None)


def _examples(cursor: Cursor) -> list[IndexedImage]:
    """Images of the class that were reviewed as clean, without those that are shown or asked for."""
    others = cursor.status.clean.difference(cursor.images(), cursor.asked())
    return cursor.session.library.surest(cursor.class_index, others, MAX_EXAMPLES)


def _progress(tab: Tab) -> dict[str, object]:
    session = tab.session
    left = len(session.unsettled())
    count = len(session.share.classes)
    of_models = {role: session.unsettled(role) for role in session.library.params.models}
    return {
        "models": {role: (count - len(open_), _time_left(session, len(open_))) for role, open_ in of_models.items()},
        "all": count,
        "done": count - left,
        "left": _time_left(session, left),
        "short": {
            index: session.lacking_in_words(index)
            for index, status in session.statuses.items()
            if status.state == "short"
        },
        "conflicts": sum(bool(status.conflicts) for status in session.statuses.values()),
        "verdicts": sum(len(status.own) for status in session.statuses.values()),
    }


def _time_left(session: Session, classes: int) -> str | None:
    seconds = session.state.pace.seconds_left(classes)
    return None if seconds is None or not classes else in_words(seconds)


def _ahead(tab: Tab) -> Iterator[str]:
    """The addresses of the images that come next, of the class and of others; their hints are measured meanwhile."""
    session = tab.session
    # the one in focus first, whose crop may wait for a proposal
    images = [*filter(None, [tab.cursor.focus]), *tab.cursor.images(), *tab.cursor.next_batch()]
    size = _card_size(tab.cursor)
    yield from (session.library.images[image_id].url(size) for image_id in tab.cursor.next_batch())
    for class_index in tab.order.upcoming(tab.cursor.class_index):
        there = Cursor(session)
        session.refresh_class(class_index)
        there.go_to(class_index)
        images += there.images()
        shown = [session.library.images[image_id] for image_id in there.images()]
        size = _card_size(there)
        yield from (image.url(size) for image in shown)
        yield from (image.url("tile") for image in _examples(there))
    # one request, so that the class on the screen comes first
    session.hints.request(images)


def _distinct_views(library: Library) -> list[tuple[str, str, int]]:
    """The distinct preprocessings: the role in the image's address, the names of all models that share it, its size."""
    views: dict[object, list[str]] = {}
    for role, preprocessing in library.seen_by.items():
        views.setdefault(preprocessing, []).append(role)
    return [(roles[0], ", ".join(roles), library.seen_by[roles[0]].size) for roles in views.values()]


def _short_id(image_id: str, classes: ClassTable) -> str:
    """The number of an image of ImageNet; for others, the name of the file."""
    return image_id[-8:] if classes.is_imagenet else PurePath(image_id).name


@cache
def _templates() -> Environment:
    templates = html_templates("cleanset.review.page")
    templates.filters["short_id"] = _short_id
    templates.filters["class_name"] = lambda key, classes: classes.labels[classes.indices[key]]
    templates.filters["thousands"] = lambda number: f"{number:,}"
    templates.filters["known_box"] = known_box
    templates.tests["unknown_box"] = lambda box: box is UNKNOWN_BOX
    templates.globals["zoom_labels"] = ZOOM_LABELS
    templates.globals["more_verdicts"] = SHOWN
    templates.globals["Action"] = Action
    templates.globals["Section"] = HelpSection
    templates.globals["entries"] = ENTRIES
    templates.globals["help_lines"] = help_lines
    templates.globals["help_sections"] = HELP_SECTIONS
    templates.globals["most_used"] = MOST_USED
    templates.globals |= {
        "filters": FILTERS, "by_keys": BY_KEYS,
        "tiers": TIER_WORDS, "bases": BASIS_WORDS,
        "min_pixels": MIN_WIDTH * MIN_HEIGHT, "min_shown_seconds": MIN_SHOWN_SECONDS, "max_short": MAX_SHORT_NAMED,
    }  # fmt: skip
    return templates
