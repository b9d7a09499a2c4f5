"""The addresses of the images. An image is asked for by image id, and looked up: no path comes from a browser."""

from collections.abc import Callable

from fastapi import FastAPI
from starlette.responses import PlainTextResponse, Response

from cleanset.errors import CleansetError
from cleanset.images.boxes import Box, check_box, parse_box
from cleanset.review_page.library import IndexedImage, Library
from cleanset.web.images import CARD_PIXELS, preprocessed, reason

_KEPT = {"Cache-Control": "private, max-age=86400, immutable"}
_FRESH = {"Cache-Control": "no-store"}


def serve(app: FastAPI, library: Library) -> None:
    """Add /image/card, /image/full, /crop and /seen to an application."""

    @app.get("/image/{size}/{image_id}")
    def image(size: str, image_id: str) -> Response:
        longest = {"card": CARD_PIXELS, "full": None}
        if size not in longest:
            return _unknown()
        return _answer(library, image_id, lambda _: library.photos.encoded(image_id, longest[size]), _KEPT)

    @app.get("/crop/{image_id}")
    def crop(image_id: str, box: str = "") -> Response:
        return _answer(
            library, image_id, lambda shown: library.photos.cropped(image_id, _inside(box, shown), lambda x: x), _FRESH
        )

    @app.get("/seen/{role}/{image_id}")
    def seen(role: str, image_id: str, box: str = "") -> Response:
        if role not in library.seen_by:
            return _unknown()
        see = preprocessed(library.seen_by[role])
        return _answer(
            library, image_id, lambda shown: library.photos.cropped(image_id, _inside(box, shown), see), _FRESH
        )


def _answer(
    library: Library, image_id: str, encode: Callable[[IndexedImage], bytes], headers: dict[str, str]
) -> Response:
    image = library.images.get(image_id)
    if image is None:
        return _unknown()
    try:
        data = encode(image)
    except (CleansetError, OSError, ValueError) as error:
        return PlainTextResponse(f"{image_id}: {reason(error)}\n", 500, _FRESH)
    return Response(data, media_type="image/png" if data.startswith(b"\x89PNG") else "image/jpeg", headers=headers)


def _unknown() -> Response:
    return PlainTextResponse("no such image\n", 404)


def _inside(text: str, image: IndexedImage) -> Box | None:
    """The box in an address; None for the whole image. Raises ValueError for any other text."""
    if not text:
        return None
    box = parse_box([int(edge) for edge in text.split(",")])
    check_box(box, image.width, image.height)
    return box
