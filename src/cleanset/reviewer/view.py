"""What a tab shows, as HTML: made from templates in which everything is escaped."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from cleanset.after_crop import is_wrong
from cleanset.boxes import Crop
from cleanset.review.folder import BOARD
from cleanset.review.queue import Candidate
from cleanset.review.verdicts import Review
from cleanset.reviewer.desk import Desk
from cleanset.reviewer.keys import FILTERS, HELP, REASONS
from cleanset.reviewer.library import Library, Picture
from cleanset.reviewer.pace import in_words
from cleanset.reviewer.place import Place

if TYPE_CHECKING:
    from cleanset.review.hints import Hint

EXAMPLES = 3
_COLUMNS = {1: 1, 2: 2, 3: 2, 4: 2}


@dataclass(frozen=True, slots=True)
class Card:
    """A picture beside the others. `said`: this reviewer's verdict; `others`: whose verdicts may be shown.

    `wrong`: the models that take the crop for another class.
    """

    number: int
    picture: Picture
    url: str
    models: dict[str, Candidate]
    serves: frozenset[str]
    said: Review | None
    others: Sequence[tuple[str, Review]]
    in_focus: bool
    asked: bool
    hints: "Sequence[Hint]"
    wrong: Sequence[str]


def url_of(picture: Picture, full: bool = False) -> str:
    """The address of a picture; it changes with the bytes, so that a browser may keep what it has."""
    return f"/picture/{'full' if full else 'card'}/{picture.image_id}?{picture.sha256[:16]}"


def cards(desk: Desk) -> list[Card]:
    """The pictures of the class, as the desk shows them."""
    library, stand, mine = desk.room.library, desk.stand, desk.room.reviewer
    models = library.candidates(desk.class_index)
    asked = {question.image_id: frozenset(question.serves) for question in stand.questions}
    signs = desk.room.signs.of(desk.pictures())
    made = []
    for number, image_id in enumerate(desk.pictures(), start=1):
        votes = stand.votes.get((desk.class_index, image_id), {})
        own = votes[mine].review if mine in votes else None
        # who has not judged yet shall not be led by the others; the board decides between them
        told = own is not None or mine == BOARD
        others = [(name, vote.review) for name, vote in sorted(votes.items()) if told and name != mine]
        picture = library.pictures[image_id]
        made.append(
            Card(
                number, picture, url_of(picture), models.get(image_id, {}), asked.get(image_id, frozenset()),
                own, others, image_id == desk.focus, image_id in asked, signs.get(image_id, ()),
                _wrong_models(desk, image_id, own),
            )
        )  # fmt: skip
    return made


def _wrong_models(desk: Desk, image_id: str, own: Review | None) -> list[str]:
    if own is None or own.box is None:
        return []
    crop, scores = Crop(image_id, own.box), desk.room.crop_scores
    return [role for role in desk.room.library.params.models if is_wrong(crop, desk.class_index, scores.said(role))]


def render(desk: Desk) -> dict[str, str]:
    """The HTML of each part of the page: desk, overlay, panel. What it shows as said is remembered in the desk."""
    desk.room.look_at(desk.class_index)
    shown = cards(desk)
    if desk.draft is None:  # else the cards may be hidden: what changed beneath was not seen
        desk.shown = {card.picture.image_id: card.said for card in shown}
    parts = {
        "desk": "end.html" if desk.ended else "desk.html",
        "overlay": f"{desk.mode}.html" if desk.mode in ("crop", "zoom", "help") else None,
        "panel": "crop_panel.html" if desk.mode == "crop" else None,
    }
    content = _content(desk, shown)
    return {part: _templates().get_template(name).render(content) if name else "" for part, name in parts.items()}


def _content(desk: Desk, shown: list[Card]) -> dict[str, Any]:
    library, votes = desk.room.library, desk.stand.votes
    flawed = {image_id for (_, image_id), by in votes.items() for vote in by.values() if vote.review.verdict != "clean"}
    beside = {card.picture.image_id for card in shown if card.asked or not desk.every}
    examples = library.examples(desk.class_index, beside | flawed, EXAMPLES)
    return {
        "desk": desk,
        "name": library.names[desk.class_index],
        "stand": desk.stand,
        "cards": shown,
        "columns": _COLUMNS.get(len(shown), 3),
        "focus": next((card for card in shown if card.in_focus), None),
        "examples": [(picture, url_of(picture)) for picture in examples],
        "roles": list(library.params.models),
        "count": library.params.export.images_per_class,
        "seen_by": _distinct_views(library),
        "progress": _progress(desk),
        "ahead": " ".join(_ahead(desk)),
        "reasons": REASONS,
        "filters": {key: (name, len(desk.tour.listed(name))) for key, name in FILTERS.items()}
        if desk.mode == "filter"
        else {},
        "help": HELP,
        "url_of": url_of,
    }


def _progress(desk: Desk) -> dict[str, Any]:
    stands = desk.room.stands
    left = desk.room.unsettled()
    seconds = desk.room.pace.left(len(left))
    states = [stand.state for stand in stands.values()]
    return {
        "all": len(stands),
        "done": len(stands) - len(left),
        "left": None if seconds is None or not left else in_words(seconds),
        "short": states.count("short"),
        "conflicts": sum(bool(stand.conflicts) for stand in stands.values()),
        "said": sum(desk.room.reviewer in votes for stand in stands.values() for votes in stand.votes.values()),
    }


def _ahead(desk: Desk) -> Iterator[str]:
    """The addresses of the pictures of the classes that come next; their signs are measured meanwhile."""
    desk.room.signs.ask(desk.pictures())
    for class_index in desk.tour.ahead(desk.class_index):
        there = Place(desk.room)
        desk.room.look_at(class_index)
        there.place_at(class_index)
        ids = there.pictures()
        desk.room.signs.ask(ids)
        yield from (url_of(desk.room.library.pictures[image_id]) for image_id in ids)
        yield from (url_of(picture) for picture in desk.room.library.examples(class_index, ids, EXAMPLES))


def _distinct_views(library: Library) -> list[tuple[str, str, int]]:
    """Models whose preprocessing is the same share one view: the role that asks for it, their names, its size."""
    views: dict[object, list[str]] = {}
    for role, preprocessing in library.seen_by.items():
        views.setdefault(preprocessing, []).append(role)
    return [(roles[0], ", ".join(roles), library.seen_by[roles[0]].size) for roles in views.values()]


@cache
def _templates() -> Environment:
    templates = Environment(
        loader=PackageLoader("cleanset.reviewer"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    templates.filters["words"] = lambda name: name.replace("_", " ")
    templates.filters["percent"] = lambda share: f"{100 * share:.1f} %"
    templates.filters["thousands"] = lambda number: f"{number:,}"
    return templates
