"""The server: binds, prints its address, opens the browser, serves page and images until Ctrl+C."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from fastapi import FastAPI

from cleanset.dataset.ilsvrc import wnids
from cleanset.edition.paths import Edition, images_are_official
from cleanset.errors import CleansetError
from cleanset.hints.background import BackgroundHints
from cleanset.review.look_again import read_look_again
from cleanset.review.store import review_file, reviewer_folders
from cleanset.review_page import page, routes
from cleanset.review_page.crop_scores import CropScores
from cleanset.review_page.library import Library, open_library
from cleanset.review_page.session import Session
from cleanset.review_page.stored_votes import StoredVotes
from cleanset.web.pages import run_page, serve_page, usual_port

STATIC = Path(__file__).parent / "static"
RESCAN_SECONDS = 5.0
"""How often all review files are looked at, for the progress over all classes."""

RESCAN_CLASSES = 25
"""How many classes are looked at before a key is answered that was pressed meanwhile."""


def run(
    edition: Edition, reviewer: str, host: str, port: int | None, browser: bool, look_again: Path | None = None
) -> None:
    """Serve the review page of an edition to one reviewer; `port` None is the usual one, 0 any free one.

    `look_again`: a file of images as `read_look_again` takes it.
    """

    def made() -> FastAPI:
        return application(open_session(edition, open_library(edition), reviewer, look_again))

    announcement = "Review page: {}  (Ctrl+C ends it; every verdict is on disk)"
    run_page(made, announcement, host, port, usual_port(edition.folder, reviewer), browser)


def open_session(edition: Edition, library: Library, reviewer: str, look_again: Path | None = None) -> Session:
    """The session of one reviewer, with every class read. Raises CleansetError for a name that is none."""
    review_file(edition.reviews, reviewer, wnids()[0])
    reviewer_folders(edition.reviews)
    crop_scores = CropScores(edition, list(library.params.models))
    official = images_are_official(edition, library.params.dataset.images)
    min_crop_pixels = library.params.review.min_crop_pixels
    stored = StoredVotes(edition.reviews, reviewer, library.index, min_crop_pixels, official)
    known = {index: library.candidates(index).keys() for index in library.classes}
    again = {} if look_again is None else read_look_again(look_again, known)
    session = Session(library, stored, reviewer, crop_scores, BackgroundHints(library.photos.read), again)
    session.refresh()
    return session


def application(session: Session) -> FastAPI:
    """Page, images and static files."""
    lock = asyncio.Lock()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        task = asyncio.create_task(_rescan(session, lock))
        yield
        task.cancel()
        session.hints.close()

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    routes.serve(app, session.library)
    page.build(session, lock)
    serve_page(app, STATIC, "cleanset review")
    return app


async def _rescan(session: Session, lock: asyncio.Lock) -> None:
    """Read changed review files, few classes at a time, so that no key waits for it."""
    classes = list(session.library.classes)
    while True:
        for start in range(0, len(classes), RESCAN_CLASSES):
            some = classes[start : start + RESCAN_CLASSES]
            await asyncio.sleep(RESCAN_SECONDS * len(some) / len(classes))
            with suppress(CleansetError, OSError):  # a table that is being written: looked at again soon
                async with lock:
                    await asyncio.to_thread(session.refresh, some)
