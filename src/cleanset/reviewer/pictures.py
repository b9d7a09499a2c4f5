"""The addresses of the pictures. A picture is asked for by image id, and looked up: no path comes from a browser."""

from collections.abc import Callable

from fastapi import FastAPI
from starlette.responses import PlainTextResponse, Response

from cleanset.boxes import Box
from cleanset.errors import CleansetError
from cleanset.reviewer.library import Library, Picture
from cleanset.reviewer.photos import CARD, as_the_model_sees

_KEPT = {"Cache-Control": "private, max-age=86400, immutable"}
_FRESH = {"Cache-Control": "no-store"}


def serve(app: FastAPI, library: Library) -> None:
    """Add /picture/card, /picture/full, /crop and /seen to an application."""

    @app.get("/picture/{size}/{image_id}")
    def picture(size: str, image_id: str) -> Response:
        longest = {"card": CARD, "full": None}
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
        see = as_the_model_sees(library.seen_by[role])
        return _answer(
            library, image_id, lambda shown: library.photos.cropped(image_id, _inside(box, shown), see), _FRESH
        )


def _answer(library: Library, image_id: str, encode: Callable[[Picture], bytes], headers: dict[str, str]) -> Response:
    picture = library.pictures.get(image_id)
    if picture is None:
        return _unknown()
    try:
        data = encode(picture)
    except (CleansetError, OSError, ValueError) as error:
        return PlainTextResponse(f"{image_id}: {error}\n", 500, _FRESH)
    return Response(data, media_type="image/png" if data.startswith(b"\x89PNG") else "image/jpeg", headers=headers)


def _unknown() -> Response:
    return PlainTextResponse("no such picture\n", 404)


def _inside(text: str, picture: Picture) -> Box | None:
    """The box in an address; None for the whole picture. Raises ValueError for any other text."""
    if not text:
        return None
    left, top, right, bottom = (int(edge) for edge in text.split(","))
    if not (0 <= left < right <= picture.width and 0 <= top < bottom <= picture.height):
        raise ValueError(f"box {text}: not inside {picture.width} x {picture.height} pixels")
    return left, top, right, bottom
