"""The guidelines of an edition: their text, section by section, and an example of each reason."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from markdown_it import MarkdownIt

from cleanset.review.page.library import IndexedImage
from cleanset.review.page.recent import ImageKey
from cleanset.review.page.session import Session
from cleanset.vocabulary import REASONS

EXAMPLES = "/static/examples"
"""Address of the drawn examples: <reason>_clean.webp and <reason>_flawed.webp."""

CLEAN = "clean"


@dataclass(frozen=True, slots=True)
class Example:
    """An image beside a rule. `image` is one of the edition, or None for a drawn one, at `address`."""

    image: IndexedImage | None
    address: str
    caption: str


@dataclass(frozen=True, slots=True)
class GuidelinesSection:
    """A part of the guidelines: HTML, and examples if its heading is the name of a reason, a clean one first."""

    html: str
    examples: tuple[Example, ...]


def guidelines_sections(session: Session, text: str) -> list[GuidelinesSection]:
    """The guidelines for the page: one part before the first heading of level 2, and one from each of these on."""
    settled = _settled_examples(session)
    return [
        GuidelinesSection(_markdown().render(part), tuple(_examples(reason, settled, session)) if reason else ())
        for part, reason in _parts(text)
    ]


def _parts(text: str) -> Iterator[tuple[str, str | None]]:
    """Each part of the text, with the reason that its heading names."""
    lines: list[str] = []
    for line in [*text.splitlines(), "## "]:
        if line.startswith("## ") and lines:
            heading = lines[0].removeprefix("## ").strip().lower().replace(" ", "_")
            yield "\n".join(lines), heading if lines[0].startswith("## ") and heading in REASONS else None
            lines = []
        lines.append(line)


@cache
def _markdown() -> MarkdownIt:
    # no HTML of its own and no images: the text may come with a set from anywhere
    return MarkdownIt("commonmark", {"html": False}).disable(["image", "link", "autolink"])


def _examples(reason: str, settled: Mapping[str, Sequence[ImageKey]], session: Session) -> Iterator[Example]:
    """A clean and a flawed example: of the edition, from one class if possible, else drawn ones."""
    flawed = next(iter(settled.get(reason, ())), None)
    if flawed is None:
        for kind in ("clean", "flawed"):
            yield Example(None, f"{EXAMPLES}/{reason}_{kind}.webp", f"{kind} (drawn)")
        return
    clean = settled.get(CLEAN, ())
    for kind, key in (("clean", next((key for key in clean if key[0] == flawed[0]), None)), ("flawed", flawed)):
        if key is not None:
            yield Example(session.library.images[key[1]], "", f"{kind}: {session.library.names[key[0]].name}")
        else:
            yield Example(None, f"{EXAMPLES}/{reason}_clean.webp", "clean (drawn)")


def _settled_examples(session: Session) -> dict[str, list[ImageKey]]:
    """Images that this reviewer has reviewed and the decision agrees, by reason or CLEAN.

    Only those, so that nobody learns here what others found on an image that they may have to review themselves.
    """
    found: dict[str, list[ImageKey]] = {}
    for class_index, status in session.statuses.items():
        for image_id, decision in sorted(status.decisions.items()):
            own = session.own(class_index, image_id)
            if own is None or own.verdict != decision.verdict or image_id not in session.library.images:
                continue
            if decision.verdict == "clean":
                found.setdefault(CLEAN, []).append((class_index, image_id))
            elif own.reason is not None and own.reason == decision.reason:
                found.setdefault(own.reason, []).append((class_index, image_id))
    return found
