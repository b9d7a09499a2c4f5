"""A cache on disk of review files that were parsed, by their content: each command needs all verdicts of an edition."""

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pydantic
import yaml

from cleanset.cache import PACKAGE, cache_folder, code_digest
from cleanset.classes import ClassTable
from cleanset.errors import CleansetError
from cleanset.files import read_bytes, sha256
from cleanset.images.boxes import UNKNOWN_BOX, CropBox, Unknown
from cleanset.review.file_format import UNKNOWN, check_other_class, parse_reviews
from cleanset.review.verdicts import Clean, Cropped, Rejected, Review, Unsure, Verdict, Vote
from cleanset.vocabulary import Basis, Reason, Seen, VerdictKind

CODE = (
    "images/boxes.py", "review/file_format.py", "review/verdict_cache.py", "review/verdicts.py", "validation.py",
    "vocabulary.py", "yaml_files.py",
)  # fmt: skip
"""The files of the package that decide on the verdicts in a text."""
_DIGITS = 64
"""Of a SHA-256."""

_Row = tuple[
    str, str, VerdictKind, Reason | None, list[int] | str | None, str | None, Basis | None, Seen | None, str, str | None
]
"""A verdict as it is kept: image id, place in the file, verdict, reason, box, correct class, basis, seen, SHA-256,
note."""


@dataclass(frozen=True, slots=True)
class VerdictCache:
    """Verdicts by the SHA-256 of a review file's class and text, a file each: its own SHA-256, and JSON.

    Only what has parsed without an error is kept, so that a text with one is always parsed. Several processes may use
    one folder at a time. A file that is damaged or cannot be read counts as missing, and one that cannot be written is
    left out: then the text is parsed again.
    """

    folder: Path | None
    """None: nothing is kept."""

    def votes(self, text: str, wnid: str, where: str, classes: ClassTable) -> list[Vote]:
        """As `parse_reviews`, and with its errors."""
        if self.folder is None:
            return parse_reviews(text, wnid, where, classes)
        path = self.folder / sha256(f"{wnid}\n{text}".encode())
        found = _read(path, wnid, where)
        if found is None:
            found = parse_reviews(text, wnid, where, classes)
            _write(path, found, where)
        for vote in found:  # the text may have been parsed for other classes
            if isinstance(vote.review.verdict, Rejected):
                check_other_class(vote.review.verdict.correct_class, wnid, classes, vote.where)
        return found


def usual_verdict_cache(package: Path = PACKAGE) -> VerdictCache:
    """The cache that all editions on this machine share; without a home or CLEANSET_CACHE, none.

    Its folder is named after the code of the package that parses verdicts and the libraries that it calls.
    """
    made_by = code_digest(CODE, f"{pydantic.VERSION} {yaml.__version__}", package)
    try:
        return VerdictCache(cache_folder() / "verdicts" / made_by[:16])
    except CleansetError:  # no home
        return VerdictCache(None)


def _read(path: Path, wnid: str, where: str) -> list[Vote] | None:
    """The verdicts in a file of the cache, at places in the review file `where`; None for a missing or damaged file."""
    with suppress(OSError, CleansetError):
        data = read_bytes(path)
        if data[:_DIGITS] == sha256(data[_DIGITS:]).encode():
            return [_vote(row, wnid, where) for row in json.loads(data[_DIGITS:])]
    return None


def _write(path: Path, votes: list[Vote], where: str) -> None:
    content = json.dumps([_row(vote, where) for vote in votes], separators=(",", ":")).encode()
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        # a file that a kill cuts off is seen by its digest
        path.write_bytes(sha256(content).encode() + content)


def _row(vote: Vote, where: str) -> _Row:
    review = vote.review
    verdict = review.verdict
    return (
        vote.image_id,
        vote.where.removeprefix(where),
        verdict.kind,
        review.reason,
        _kept_box(review.box),
        verdict.correct_class if isinstance(verdict, Rejected) else None,
        review.basis,
        review.seen,
        review.sha256,
        review.note,
    )


def _kept_box(box: CropBox) -> list[int] | str | None:
    if box is None:
        return None
    return UNKNOWN if isinstance(box, Unknown) else list(box)


def _vote(row: _Row, wnid: str, where: str) -> Vote:
    image_id, place, kind, reason, box, correct_class, basis, seen, digest, note = row
    verdict = _verdict(kind, reason, box, correct_class)
    review = Review(verdict=verdict, basis=basis, seen=seen, sha256=digest, note=note)
    return Vote(wnid=wnid, image_id=image_id, review=review, where=f"{where}{place}")


def _verdict(
    kind: VerdictKind, reason: Reason | None, box: list[int] | str | None, correct_class: str | None
) -> Verdict:
    if kind == "clean":
        return Clean()
    if kind == "unsure":
        return Unsure(reason)
    assert reason is not None  # parse_reviews refuses it
    if kind == "reject":
        return Rejected(reason, correct_class)
    if isinstance(box, list):
        left, top, right, bottom = box
        return Cropped(reason, (left, top, right, bottom))
    return Cropped(reason, UNKNOWN_BOX)
