"""The guidelines, shown over the class in parts, with an example of each reason."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from markdown_it import MarkdownIt

from cleanset.review.page.session import Session
from cleanset.review.verdicts import Clean, ImageKey
from cleanset.vocabulary import Reason

EXAMPLES = "static/examples"
"""Address of the drawn examples: <reason>_clean.webp and <reason>_flawed.webp of each reason that has some."""


@dataclass(frozen=True, slots=True)
class RuleExample:
    """An image next to a rule, of the edition or drawn."""

    address: str
    caption: str


@dataclass(frozen=True, slots=True)
class GuidelinesSection:
    """A part of the guidelines: HTML, and examples if its heading is the name of a reason, a clean one first."""

    html: str
    examples: tuple[RuleExample, ...]


def guidelines_sections(session: Session, text: str) -> list[GuidelinesSection]:
    """The guidelines for the page: one part before the first heading of level 2, and one for each of these."""
    settled = _settled_examples(session)
    return [
        GuidelinesSection(_markdown().render(part), tuple(_examples(reason, settled, session)) if reason else ())
        for part, reason in _parts(text, session.library.reasons)
    ]


def _parts(text: str, reasons: Collection[Reason]) -> Iterator[tuple[str, Reason | None]]:
    """Each part of the text, with the reason that its heading names."""
    lines: list[str] = []
    for line in [*text.splitlines(), "## "]:
        if line.startswith("## ") and lines:
            heading = lines[0].removeprefix("## ").strip().lower().replace(" ", "_")
            named = next((reason for reason in reasons if lines[0].startswith("## ") and reason == heading), None)
            yield "\n".join(lines), named
            lines = []
        lines.append(line)


@cache
def _markdown() -> MarkdownIt:
    # no HTML of its own and no images: the text may come with a set from anywhere
    return MarkdownIt("commonmark", {"html": False}).disable(["image", "link", "autolink"])


def _examples(reason: Reason, settled: Mapping[str, Sequence[ImageKey]], session: Session) -> Iterator[RuleExample]:
    """A clean and a flawed example: from the edition, in one class if possible, else drawn ones if there are any."""
    flawed = next(iter(settled.get(reason, ())), None)
    clean = next((key for key in settled.get("clean", ()) if flawed and key[0] == flawed[0]), None)
    for kind, key in (("clean", clean), ("flawed", flawed)):
        if key is None and session.library.reasons[reason].has_example:
            yield RuleExample(f"{EXAMPLES}/{reason}_{kind}.webp", f"{kind} (drawn)")
        elif key is not None:
            caption = f"{kind}: {session.library.classes.names[key[0]].name}"
            yield RuleExample(session.library.images[key[1]].url("full"), caption)


def _settled_examples(session: Session) -> dict[str, list[ImageKey]]:
    """Images that this reviewer has reviewed and the decision agrees, by reason, or clean."""
    # only those, so that nobody learns here what others found on an image that they may have to review themselves
    found: dict[str, list[ImageKey]] = {}
    for class_index, status in session.statuses.items():
        for image_id, decision in sorted(status.decisions.items()):
            own = session.own(class_index, image_id)
            if own is None or own.verdict.kind != decision.verdict or image_id not in session.library.images:
                continue
            name = "clean" if isinstance(own.verdict, Clean) else own.reason
            if name is not None and own.reason == decision.reason:
                found.setdefault(name, []).append((class_index, image_id))
    return found
