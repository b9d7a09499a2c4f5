"""Review files that were parsed before, by their content: each command needs all verdicts of an edition."""

from pathlib import Path

import pydantic
import yaml
from pydantic import TypeAdapter

from cleanset.cache import PACKAGE
from cleanset.classes import ClassTable
from cleanset.files import sha256
from cleanset.kept_files import KeptFiles, kept_files
from cleanset.review.file_format import check_other_class, parse_review, parse_reviews, review_fields
from cleanset.review.verdicts import Rejected, Vote

CODE = (
    "images/boxes.py", "review/file_format.py", "review/verdict_cache.py", "review/verdicts.py", "validation.py",
    "vocabulary.py", "yaml_files.py",
)  # fmt: skip
"""The files of the package that decide on the verdicts in a text."""

_ROWS = TypeAdapter(list[tuple[str, str, dict[str, object]]])
"""Verdicts as they are kept: image id, place in the file, and the fields of the entry."""


def usual_verdict_files(package: Path = PACKAGE) -> KeptFiles:
    """The verdicts that all editions on this machine share."""
    return kept_files("verdicts", CODE, f"{pydantic.VERSION} {yaml.__version__}", package)


def kept_votes(text: str, wnid: str, where: str, classes: ClassTable, kept: KeptFiles) -> list[Vote]:
    """As `parse_reviews`, and with its errors. A text with an error is not kept, and parsed each time."""
    name = sha256(f"{wnid}\n{text}".encode())
    rows = kept.read_value(name, _ROWS)
    if rows is None:
        found = parse_reviews(text, wnid, where, classes)
        new = [(each.image_id, each.where.removeprefix(where), review_fields(each.review)) for each in found]
        kept.keep_value(name, _ROWS, new)
        return found
    found = [Vote(wnid, image_id, parse_review(fields, where), f"{where}{place}") for image_id, place, fields in rows]
    for vote in found:  # the text may have been parsed for other classes
        if isinstance(vote.review.verdict, Rejected):
            check_other_class(vote.review.verdict.correct_class, wnid, classes, vote.where)
    return found
