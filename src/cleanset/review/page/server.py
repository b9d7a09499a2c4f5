"""The server of the review page: NiceGUI's elements around the HTML of `view`, and the images.

The browser asks for an image by its image id, which is looked up: paths from a browser are never opened.
"""

import asyncio
import gc
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from fastapi import FastAPI, Request
from nicegui import ui
from PIL.Image import Image
from starlette.responses import PlainTextResponse, Response

from cleanset.classes import ClassName, ClassTable, search_classes
from cleanset.edition.paths import Edition, images_are_official
from cleanset.errors import CleansetError, cut
from cleanset.image_ids import check_matched
from cleanset.images.boxes import Box, check_box, parse_box
from cleanset.plumbing.machine import without_garbage_collection
from cleanset.plumbing.validation import MAX_VALUE, shown
from cleanset.review.audit import AuditPlan
from cleanset.review.audit_files import verdicts_folder
from cleanset.review.gold_files import read_gold_key
from cleanset.review.hints.background import BackgroundHints
from cleanset.review.opinions import Opinions, read_look_again, read_opinions
from cleanset.review.page.actions import HIT, Action, action_of, bindings_for_browser
from cleanset.review.page.audit_library import audit_library
from cleanset.review.page.gold_items import with_golds
from cleanset.review.page.keys import ReviewKey
from cleanset.review.page.library import IndexedImage, Library, background_hints, label_library, open_library
from cleanset.review.page.session import Session
from cleanset.review.page.shares import Share, share_in_team, share_of
from cleanset.review.page.stored import CropScores, StoredVotes
from cleanset.review.page.tab import Tab
from cleanset.review.page.view import note_buttons, render
from cleanset.review.store import BOARD, MAX_NOTE, check_reviewer, reviewer_folders
from cleanset.web import pages
from cleanset.web.guard import PERSON
from cleanset.web.images import CARD_PIXELS, SMALL_CARD_PIXELS, as_the_model_sees, fault_text
from cleanset.web.tokens import kept_tokens

STATIC = Path(__file__).parent / "static"
# interval at which all review files are checked for changes, for the progress over all classes
RESCAN_SECONDS = 5.0

# number of classes checked at a time; a key pressed meanwhile waits for them
RESCAN_CLASSES = 25

MEASURING_AFTER_SECONDS = 5.0
"""Time after the start until the candidates that nobody has asked for yet are measured."""

TILE_PIXELS = 360
"""Longest side of an image among the reviewer's last verdicts, and in the guidelines."""


def run(
    edition: Edition,
    reviewers: Sequence[str],
    address: pages.PageAddress,
    *,
    look_again: Path | None = None,
    plan: AuditPlan | None = None,
    share: str | None = None,
    labels: bool = False,
) -> None:
    """Serve the review page of an edition until Ctrl+C: to one reviewer, or to a team, by a secret link for each.

    `look_again`: a file for `read_look_again`. `plan`: the plan of the audit whose draws are shown instead. `share`:
    the part of the classes to ask for, such as 1/3; without it, the share in `review.assign`. `labels`: the images
    whose labels the models contradict are shown instead.
    """
    for reviewer in reviewers:
        check_reviewer(reviewer)
    team = reviewers if len(reviewers) > 1 else ()

    @without_garbage_collection()
    def make_application() -> FastAPI:
        library = open_library(edition)
        of_models = None
        if labels:
            library, of_models = label_library(edition, library)
        hints = None
        if team and not library.params.review.gold:  # one process measures for all: they see the same images
            hints = background_hints(library)
        sessions = {
            name: open_session(
                edition,
                library,
                name,
                look_again=look_again,
                plan=plan,
                share=share,
                team=team,
                hints=hints,
                of_models=of_models,
            )
            for name in reviewers
        }
        # else collections, and NiceGUI's search for its server, would go through all candidates before the first page
        gc.freeze()
        return application(sessions)

    announcement = "Review page: {}  (Ctrl+C ends it; every verdict is saved)"
    if team:
        announcement = "Review page, a link for each reviewer (Ctrl+C ends it; every verdict is saved):\n{}"
    secret = edition.folder / ".dvc" / "tmp" / "review_links"
    pages.run_page(
        make_application,
        announcement,
        folder=edition.folder,
        name="team" if team else reviewers[0],
        people=kept_tokens(secret, team) if team else dict.fromkeys(reviewers, ""),
        at=address,
    )


def open_session(
    edition: Edition,
    library: Library,
    reviewer: str,
    *,
    look_again: Path | None = None,
    plan: AuditPlan | None = None,
    share: str | None = None,
    team: Collection[str] = (),
    hints: BackgroundHints | None = None,
    of_models: Opinions | None = None,
) -> Session:
    """The session of one reviewer, with every class read; in a `team`, they see their own verdicts alone.

    `hints`: the hints of all sessions on the same images; None for their own. `of_models`: the predictions that
    contradict labels, for a library of `label_library`. Raises CleansetError for an invalid name or share.
    """
    check_reviewer(reviewer)
    reviewer_folders(edition.reviews)
    if plan is not None:
        library = audit_library(edition, library, plan, reviewer)
    crop_scores = CropScores(edition, list(library.params.models), library.classes)
    official = images_are_official(edition, library.params.dataset.images)
    min_crop_pixels = library.params.review.min_crop_pixels
    folder = edition.reviews if plan is None else verdicts_folder(edition.reviews, plan.model)
    folder.mkdir(exist_ok=True)  # git has no empty folder
    golds = read_gold_key(edition.reviews, library.classes)
    stored = StoredVotes(folder, library.index, library.classes, min_crop_pixels, official_images=official, golds=golds)
    known = {index: library.candidates(index).keys() for index in library.by_class if look_again}
    again = {} if look_again is None else read_look_again(look_again, known, library.classes)
    hints = hints or background_hints(library)
    review = library.params.review
    given = read_opinions((edition.folder / name for name in review.opinions), library.classes)
    named = "images of review.opinions in params.yaml are in the edition"
    check_matched(len(given.keys() & library.index.keys()), len(given), named, "opinions on its images")
    opinions = {**given, **(of_models or {})}
    classes = list(library.by_class)
    mine = Share(frozenset(classes), frozenset())
    if share is not None:
        mine = share_of(classes, share, review.overlap, review.min_reviewers)
    elif plan is None and of_models is None:
        mine = share_in_team(classes, reviewer, team, review)
    session = Session(
        library=library,
        stored=stored,
        reviews=edition.reviews,
        reviewer=reviewer,
        crop_scores=crop_scores,
        hints=hints,
        share=mine,
        look_again=again,
        opinions=opinions,
        task="audit" if plan is not None else "labels" if of_models is not None else "review",
        others="hidden" if team and reviewer != BOARD else "shown",
        all_golds=golds,
    )
    session.refresh()
    return session if session.task == "labels" else with_golds(edition, session)


def application(sessions: Mapping[str, Session]) -> FastAPI:
    """The web application: page, images and static files. `sessions`: the session of each reviewer, whom the guard
    names."""
    lock = asyncio.Lock()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(_rescan(session, lock)) for session in sessions.values()]
        tasks.append(asyncio.create_task(_measure_all(sessions.values())))
        yield
        for task in tasks:
            task.cancel()
        for session in sessions.values():
            session.hints.close()

    def session_of(request: Request) -> Session:
        return sessions[request.scope[PERSON]]

    app = pages.new_application(lifespan=lifespan)
    serve_images(app, session_of)
    build(session_of, lock)
    pages.serve_page(app, STATIC, "cleanset review")
    return app


async def _measure_all(sessions: Iterable[Session]) -> None:
    """Measure the hints at all candidates in the background, once the first page is there."""
    await asyncio.sleep(MEASURING_AFTER_SECONDS)
    for hints, library in {session.hints: session.library for session in sessions}.items():
        hints.measure_all([list(library.candidates(class_index)) for class_index in library.by_class])


async def _rescan(session: Session, lock: asyncio.Lock) -> None:
    """Read changed review files, a few classes at a time, so that keys do not wait."""
    classes = list(session.library.by_class)
    while True:
        for start in range(0, len(classes), RESCAN_CLASSES):
            some = classes[start : start + RESCAN_CLASSES]
            # spread over the interval: a round takes RESCAN_SECONDS, however many classes there are
            await asyncio.sleep(RESCAN_SECONDS * len(some) / len(classes))
            with suppress(CleansetError, OSError):  # a table that is being written: the next round reads it
                async with lock:
                    await asyncio.to_thread(session.refresh, some)


def serve_images(app: FastAPI, session_of: Callable[[Request], Session]) -> None:
    """Add /image/<size>/<id>, /crop/<id> and /seen/<role>/<id> to an application; a session may have own images."""

    @app.get("/image/{size}/{image_id:path}")
    def image(request: Request, size: str, image_id: str) -> Response:
        library = session_of(request).library
        longest = {"card": CARD_PIXELS, "small": SMALL_CARD_PIXELS, "tile": TILE_PIXELS, "full": None}
        if size not in longest:
            return _unknown("size", size, longest)
        return _answer(library, image_id, lambda _: library.photos.encoded(image_id, longest[size]), pages.KEPT)

    @app.get("/crop/{image_id:path}")
    def crop(request: Request, image_id: str, box: str = "") -> Response:
        return part(session_of(request).library, image_id, box, lambda image: image)

    @app.get("/seen/{role}/{image_id:path}")
    def seen(request: Request, role: str, image_id: str, box: str = "") -> Response:
        library = session_of(request).library
        if role not in library.seen_by:
            return _unknown("model", role, library.seen_by)
        return part(library, image_id, box, as_the_model_sees(library.seen_by[role]))

    def part(library: Library, image_id: str, box: str, see: Callable[[Image], Image]) -> Response:
        return _answer(
            library, image_id, lambda image: library.photos.cropped(image_id, _inside(box, image), see), pages.FRESH
        )


def _answer(
    library: Library, image_id: str, encode: Callable[[IndexedImage], bytes], headers: dict[str, str]
) -> Response:
    image = library.images.get(image_id)
    if image is None:
        return _unknown("image", image_id, ["the id of a candidate"])
    try:
        return pages.image_response(encode(image), headers)
    except _AddressError as error:
        return PlainTextResponse(f"{image_id}: {error}\n", 400, pages.FRESH)
    except (CleansetError, OSError, ValueError) as error:
        return PlainTextResponse(f"{image_id}: {fault_text(error)}\n", 500, pages.FRESH)


class _AddressError(ValueError):
    """An address that names an existing image, and a box that it cannot have."""


def _unknown(what: str, name: str, expected: Iterable[str]) -> Response:
    text = f"unknown {what} {shown(name)}; expected {', '.join(expected) or 'none'}\n"
    return PlainTextResponse(text, 404)


def _inside(text: str, image: IndexedImage) -> Box | None:
    """The box in an address; None for the whole image. Raises _AddressError for any other text."""
    if not text:
        return None
    try:
        box = parse_box([int(edge) for edge in text.split(",")])
        check_box(box, image.width, image.height)
    except ValueError:
        raise _AddressError(
            f"box={cut(text, MAX_VALUE)}: expected box=left,top,right,bottom in whole pixels, inside the image's "
            f"{image.width} × {image.height}"
        ) from None
    return box


class Dialog:
    """A dialog over the page, refilled each time. `leave` is called for a click outside; without it, none counts."""

    def __init__(self, label: str, leave: Callable[[], Awaitable[None]] | None = None, props: str = "") -> None:
        persistent = "" if leave else "persistent "
        self._dialog = ui.dialog().props(f'{persistent}{props}transition-duration=0 aria-label="{label}"')
        if leave is not None:
            # not `hide`: it also comes after the server has closed the dialog, when the next one may be open
            self._dialog.on("update:model-value", lambda: leave())

    def show(self, fill: Callable[[], None] | None) -> None:
        """Open it with the content of `fill`, or close it."""
        if fill is not None and self._dialog.value:
            return
        if self._dialog.default_slot.children:
            self._dialog.clear()  # now: the page closes it later, and its field must not take the text of the next one
        if fill is None:
            self._dialog.close()
        else:
            with self._dialog:
                fill()
            self._dialog.open()


class Search(Dialog):
    """Find a class by name or wnid.

    `searched`: the class indices that can be found. `state`: the state of a class in words, by class index.
    """

    _text: ui.input
    _hits: ui.list

    def __init__(
        self,
        classes: ClassTable,
        searched: Collection[int],
        leave: Callable[[], Awaitable[None]],
        state: Callable[[int], str],
    ) -> None:
        super().__init__("Search for a class", leave, "position=top ")
        self._indices = {classes.keys[index]: index for index in searched}
        self._words = classes.search_words.capitalize()
        self._names = [classes.names[index] for index in searched]
        self._state = state
        self._row = 0

    def chosen(self, sent: ReviewKey) -> int | None:
        """The class index of the hit that is clicked, or of the selected row among those of a text; None if none is."""
        if sent.key == HIT:
            return self._indices.get(sent.card or "")
        # by the text that came with the key: the field may have changed since
        hits = search_classes(self._names, sent.text)
        return hits[min(self._row, len(hits) - 1)].class_index if hits else None

    def fill(self) -> None:
        """Put in the field and the classes that are found."""
        with ui.card().classes("search"):
            label = f"{self._words} of a class"
            self._text = ui.input(placeholder=label, on_change=self._list_first)
            self._text.props(f'autofocus outlined dense aria-label="{label}"').classes("w-full")
            self._hits = ui.list().props("dense").classes("hits")
        self._text.on("keydown.down.prevent", lambda: self._move(1))
        self._text.on("keydown.up.prevent", lambda: self._move(-1))
        self._list_first()

    def _list_first(self) -> None:
        self._row = 0
        self._list()

    def _found(self) -> list[ClassName]:
        return search_classes(self._names, self._text.value or "")

    def _list(self) -> None:
        self._hits.clear()
        with self._hits:
            if not self._found():
                ui.item_label("No class found.").props("role=status")
            for row, name in enumerate(self._found()):
                with ui.item().props("clickable") as item:
                    item.props["data-hit"] = name.key  # the page sends a click on it as a key
                    with ui.item_section():
                        ui.item_label(name.names).props("dir=auto")
                        about = (each for each in (name.key, name.gloss) if each not in ("", name.name))
                        ui.item_label(" · ".join(about)).props("caption lines=1")
                    with ui.item_section().props("side"):
                        ui.item_label(self._state(name.class_index)).props("caption")
                if row == self._row:
                    item.props("active")

    def _move(self, by: int) -> None:
        self._row = max(0, min(len(self._found()) - 1, self._row + by))
        self._list()


def fill_note(title: str, text: str) -> None:
    """Put a field for a note into a dialog."""
    with ui.card().classes("note"):
        ui.label(title).classes("title")
        field = ui.textarea(value=text).props('autofocus outlined autogrow aria-label="Note"').classes("w-full")
        field.props(f"maxlength={MAX_NOTE}")
        ui.label(f"Shift+Enter starts a new line. At most {MAX_NOTE:,} characters.").classes("hint")
        ui.html(note_buttons(), sanitize=False)


_NARROW = """
<p id="narrow" role="alert">This window is too narrow to judge images.
Make it at least 640 pixels wide, or zoom out.</p>
"""

# interval at which a tab checks the files of its class for changes
REFRESH_SECONDS = 1.0

_HEAD = f"""
<script id="actions" type="application/json">{json.dumps(bindings_for_browser())}</script>
<link rel="stylesheet" href="static/cropper.min.css">
<link rel="stylesheet" href="static/page.css">
<script src="static/cropper.min.js"></script>
<script type="module" src="static/page.js"></script>
"""


class TabElements(pages.KeyedTab):
    """The elements in a browser that show one tab, and the keys that come from there."""

    SENT = ReviewKey
    _tab: Tab

    def __init__(self, session: Session, lock: asyncio.Lock, class_index: int | None) -> None:
        tab = Tab(session)
        tab.start(class_index)
        super().__init__(tab, lock)
        ui.html(_NARROW, sanitize=False)
        self._search = Search(
            session.library.classes, session.library.by_class, self._leave_search, session.state_in_words
        )
        self._note = Dialog("Note")
        self._show_dialogs()
        ui.timer(REFRESH_SECONDS, self._refresh)

    def render(self) -> dict[str, str]:
        """View, overlay and panel."""
        return render(self._tab)

    def show(self, parts: dict[str, str]) -> None:
        """Show the tab as rendered, and the dialog that is open."""
        super().show(parts)
        self._show_dialogs()

    def press(self, sent: ReviewKey) -> None:
        """Carry out a key. A dialog takes the text typed on Enter, and discards it on Escape."""
        self._tab.resume(sent.tab)
        action = action_of(self._tab.mode, sent.key)
        if action is Action.KEEP_NOTE:
            self._tab.keep_note(sent.card, sent.text)
        elif action is Action.LEAVE_TEXT:
            self._tab.leave_text()
        elif action is Action.SAVE_TEXT and self._tab.mode == "note":
            self._tab.leave_note(sent.text)
        elif action is Action.SAVE_TEXT:
            chosen = self._search.chosen(sent)
            if chosen is not None:
                self._tab.choose_class(chosen, sent)
        else:
            self._tab.press(sent)

    async def _leave_search(self) -> None:
        await self.do(self._tab.leave_search)

    async def _refresh(self) -> None:
        if self._tab.mode in ("class", "end", "zoom") or self._tab.is_proposal_awaited:
            await self.do(self._tab.follow_changes)

    def _show_dialogs(self) -> None:
        self._search.show(self._search.fill if self._tab.mode == "search" else None)
        self._note.show((lambda: fill_note(*self._tab.note())) if self._tab.mode == "note" else None)


def build(session_of: Callable[[Request], Session], lock: asyncio.Lock) -> None:
    """Register the page that each tab opens; `lock` is held while a session is used."""

    @ui.page("/")
    async def page(request: Request) -> None:
        session = session_of(request)
        ui.page_title(f"cleanset review: {session.reviewer}")
        ui.add_head_html(_HEAD)
        class_index = session.library.classes.indices.get(request.query_params.get("class", ""))
        async with lock:
            if not session.unsettled():  # what others wrote since the last round may ask for something
                with suppress(CleansetError, OSError):  # of a table that is being written; a class reports its own
                    await asyncio.to_thread(session.refresh)
            TabElements(session, lock, class_index)
