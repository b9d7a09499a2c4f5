"""The server of the review page and its images.

The browser asks for an image by its image id, which is looked up: paths from a browser are never opened.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from fastapi import FastAPI
from starlette.responses import PlainTextResponse, Response

from cleanset.dataset.ilsvrc import wnids
from cleanset.edition.paths import Edition, images_are_official
from cleanset.errors import CleansetError, cut
from cleanset.images.boxes import Box, check_box, parse_box
from cleanset.review.audit import AuditPlan
from cleanset.review.audit_files import verdicts_folder
from cleanset.review.gold import read_gold_key
from cleanset.review.hints.background import BackgroundHints, usual_text_cache
from cleanset.review.look_again import read_look_again
from cleanset.review.opinions import read_opinions
from cleanset.review.page import page
from cleanset.review.page.gold_session import AuditSession, audit_library, with_golds
from cleanset.review.page.library import IndexedImage, Library, open_library
from cleanset.review.page.on_disk import CropScores, StoredVotes
from cleanset.review.page.session import Session
from cleanset.review.queue import assigned_share, share_of
from cleanset.review.store import review_file, reviewer_folders
from cleanset.validation import MAX_VALUE, shown
from cleanset.web.images import CARD_PIXELS, as_the_model_sees, fault_text
from cleanset.web.pages import run_page, serve_page, usual_port

STATIC = Path(__file__).parent / "static"
RESCAN_SECONDS = 5.0
"""Interval at which all review files are checked for changes, for the progress over all classes."""

RESCAN_CLASSES = 25
"""Number of classes checked at a time; a key pressed meanwhile waits for them."""

TILE_PIXELS = 360
"""Longest side of an image among one's own last verdicts, and in the guidelines."""

# the address of an image changes with its bytes (view.url_of), so that no browser has to ask again
_KEPT = {"Cache-Control": "private, max-age=86400, immutable"}
_FRESH = {"Cache-Control": "no-store"}


def run(
    edition: Edition,
    reviewer: str,
    host: str,
    port: int | None,
    browser: bool,
    look_again: Path | None = None,
    plan: AuditPlan | None = None,
    share: str | None = None,
) -> None:
    """Serve the review page of an edition to one reviewer until Ctrl+C.

    `port`: None for the usual one, 0 for any free one. `look_again`: a file for `read_look_again`. `plan`: of the audit
    whose draws are shown instead. `share`: the part of the classes to ask for, such as 1/3; without it, what
    `review.assign` says.
    """

    review_file(edition.reviews, reviewer, wnids()[0])

    def make_application() -> FastAPI:
        return application(open_session(edition, open_library(edition), reviewer, look_again, plan, share))

    announcement = "Review page: {}  (Ctrl+C ends it; every verdict is on disk)"
    run_page(make_application, announcement, host, port, usual_port(edition.folder, reviewer), browser)


def open_session(
    edition: Edition,
    library: Library,
    reviewer: str,
    look_again: Path | None = None,
    plan: AuditPlan | None = None,
    share: str | None = None,
) -> Session:
    """The session of one reviewer, with every class read. Raises CleansetError for an invalid name or share."""
    review_file(edition.reviews, reviewer, wnids()[0])
    reviewer_folders(edition.reviews)
    if plan is not None:
        library = audit_library(edition, library, plan, reviewer)
    crop_scores = CropScores(edition, list(library.params.models))
    official = images_are_official(edition, library.params.dataset.images)
    min_crop_pixels = library.params.review.min_crop_pixels
    folder = edition.reviews if plan is None else verdicts_folder(edition.reviews, plan.model)
    folder.mkdir(exist_ok=True)  # git has no empty folder
    golds = read_gold_key(edition.reviews)
    stored = StoredVotes(folder, reviewer, library.index, min_crop_pixels, official, golds)
    known = {index: library.candidates(index).keys() for index in library.classes}
    again = {} if look_again is None else read_look_again(look_again, known)
    session_type = Session if plan is None else AuditSession
    hints = BackgroundHints(library.photos.read, usual_text_cache())
    opinions = read_opinions(edition.folder / name for name in library.params.review.opinions)
    session = session_type(library, stored, reviewer, crop_scores, hints, again, opinions)
    review, classes = library.params.review, list(library.classes)
    if share is not None:
        session.share = share_of(classes, share, review.overlap)
    elif plan is None:
        session.share = assigned_share(classes, reviewer, review.assign, review.overlap)
    session.refresh()
    return with_golds(edition, session, golds)


def application(session: Session) -> FastAPI:
    """The web application: page, images and static files."""
    lock = asyncio.Lock()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        task = asyncio.create_task(_rescan(session, lock))
        yield
        task.cancel()
        session.hints.close()

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    serve_images(app, session.library)
    page.build(session, lock)
    serve_page(app, STATIC, "cleanset review")
    return app


async def _rescan(session: Session, lock: asyncio.Lock) -> None:
    """Read changed review files, a few classes at a time, so that keys do not wait."""
    classes = list(session.library.classes)
    while True:
        for start in range(0, len(classes), RESCAN_CLASSES):
            some = classes[start : start + RESCAN_CLASSES]
            # spread over the interval: a round takes RESCAN_SECONDS, however many classes there are
            await asyncio.sleep(RESCAN_SECONDS * len(some) / len(classes))
            with suppress(CleansetError, OSError):  # a table that is being written: the next round reads it
                async with lock:
                    await asyncio.to_thread(session.refresh, some)


def serve_images(app: FastAPI, library: Library) -> None:
    """Add /image/card, /image/full, /crop and /seen to an application."""

    @app.get("/image/{size}/{image_id}")
    def image(size: str, image_id: str) -> Response:
        longest = {"card": CARD_PIXELS, "tile": TILE_PIXELS, "full": None}
        if size not in longest:
            return _unknown("size", size, longest)
        return _answer(library, image_id, lambda _: library.photos.encoded(image_id, longest[size]), _KEPT)

    @app.get("/crop/{image_id}")
    def crop(image_id: str, box: str = "") -> Response:
        return _answer(
            library, image_id, lambda image: library.photos.cropped(image_id, _inside(box, image), lambda x: x), _FRESH
        )

    @app.get("/seen/{role}/{image_id}")
    def seen(role: str, image_id: str, box: str = "") -> Response:
        if role not in library.seen_by:
            return _unknown("model", role, library.seen_by)
        see = as_the_model_sees(library.seen_by[role])
        return _answer(
            library, image_id, lambda image: library.photos.cropped(image_id, _inside(box, image), see), _FRESH
        )


def _answer(
    library: Library, image_id: str, encode: Callable[[IndexedImage], bytes], headers: dict[str, str]
) -> Response:
    image = library.images.get(image_id)
    if image is None:
        return _unknown("image", image_id, ["the id of a candidate"])
    try:
        data = encode(image)
    except _AddressError as error:
        return PlainTextResponse(f"{image_id}: {error}\n", 400, _FRESH)
    except (CleansetError, OSError, ValueError) as error:
        return PlainTextResponse(f"{image_id}: {fault_text(error)}\n", 500, _FRESH)
    return Response(data, media_type="image/png" if data.startswith(b"\x89PNG") else "image/jpeg", headers=headers)


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
