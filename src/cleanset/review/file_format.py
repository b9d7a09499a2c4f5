"""The format of a review file, one reviewer's verdicts on one class: the only module that knows its keys."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import pydantic
import yaml
from pydantic import BeforeValidator, Field, TypeAdapter

from cleanset.classes import ClassTable
from cleanset.errors import CleansetError, cut
from cleanset.image_ids import parse_image_id
from cleanset.images.boxes import UNKNOWN_BOX, Box, Unknown, parse_box
from cleanset.plumbing.cache import PACKAGE
from cleanset.plumbing.files import sha256
from cleanset.plumbing.kept_files import KeptFiles, kept_files
from cleanset.plumbing.validation import MAX_VALUE, SHA256_FORM, Section, check_not_newer, matching, shown, validate
from cleanset.plumbing.yaml_files import parse_remembered
from cleanset.review.verdicts import OFFICIAL, Clean, Cropped, Rejected, Review, Unsure, Verdict, Vote
from cleanset.vocabulary import REASON_FORM, Basis, Reason, Seen, VerdictKind

UNKNOWN: Literal["unknown"] = UNKNOWN_BOX.value
"""Value of `crop` where the image is to be cropped, but the box is not known."""


def _crop(crop: object) -> Box | Unknown | None:
    """Check a crop box."""
    # pydantic's own union of types would report every type that does not match, not the key
    if crop is None:
        return None
    if isinstance(crop, str):
        if crop != UNKNOWN:
            raise ValueError(f"expected left, top, right, bottom in pixels, or {UNKNOWN}")
        return UNKNOWN_BOX
    return parse_box(crop)


class ReviewEntry(Section):
    """The keys of a verdict in the file, in the order in which they are written."""

    verdict: VerdictKind
    reason: Annotated[Reason, matching(REASON_FORM, "a reason such as too_small")] | None = None
    correct_class: str | None = None
    crop: Annotated[Box | Unknown | None, BeforeValidator(_crop)] = None
    object_fully_visible: bool | None = None
    """Must be stated of a crop; with another verdict it means nothing."""

    basis: Basis | None = None
    seen: Seen | None = None
    sha256: Annotated[str, Field(pattern=f"^({SHA256_FORM.pattern}|{OFFICIAL})$")]
    note: str | None = None


def parse_review(fields: Mapping[str, object], place: str) -> Review:
    """The review in the fields of an entry.

    Raises CleansetError from `place` for an unknown key, a missing or wrong value, and keys that do not go together.
    """
    entry = validate(ReviewEntry, fields, place)
    try:
        return _review(entry)
    except ValueError as error:
        raise CleansetError(f"{place}: {error}") from None


def _review(entry: ReviewEntry) -> Review:
    """The review in an entry. Raises ValueError for keys that do not go together."""
    review = Review(
        verdict=_verdict(entry),
        basis=entry.basis,
        seen=entry.seen,
        sha256=entry.sha256,
        note=entry.note,
    )
    if isinstance(review.verdict, Cropped) and entry.object_fully_visible is not True:
        raise ValueError("a crop without object_fully_visible: true; the object must remain fully visible")
    return review


def _verdict(entry: ReviewEntry) -> Verdict:
    """The verdict of an entry. Raises ValueError for keys that belong to another one."""
    match entry.verdict:
        case "clean":
            if entry.reason is not None:
                raise ValueError("verdict clean with a reason; a reason names a flaw of the image")
            _check_class(entry)
            _check_no_box(entry)
            return Clean()
        case "crop":
            reason = _reason(entry)
            _check_class(entry)
            if entry.crop is None:
                raise _wrong_box()
            return Cropped(reason, entry.crop)
        case "reject":
            reason = _reason(entry)
            _check_class(entry)
            _check_no_box(entry)
            return Rejected(reason, entry.correct_class)
        case "unsure":
            _check_class(entry)
            _check_no_box(entry)
            return Unsure(entry.reason)


def _reason(entry: ReviewEntry) -> Reason:
    if entry.reason is None:
        raise ValueError(f"verdict {entry.verdict} without a reason")
    return entry.reason


def _check_class(entry: ReviewEntry) -> None:
    if entry.correct_class is not None and (entry.verdict, entry.reason) != ("reject", "wrong_class"):
        raise ValueError("correct_class with another reason; expected verdict reject, reason wrong_class")


def _check_no_box(entry: ReviewEntry) -> None:
    if entry.crop is not None:
        raise _wrong_box()


def _wrong_box() -> ValueError:
    return ValueError("a crop box is needed for verdict crop, and for no other")


def review_fields(review: Review) -> dict[str, object]:
    """All keys of an entry in their order, each with its value as in the file; None for a key without one."""
    verdict = review.verdict
    correct_class = None
    crop: str | list[int] | None = None
    fully_visible = None
    if isinstance(verdict, Rejected):
        correct_class = verdict.correct_class
    elif isinstance(verdict, Cropped):
        crop = UNKNOWN if isinstance(verdict.box, Unknown) else list(verdict.box)
        fully_visible = True
    return {
        "verdict": verdict.kind,
        "reason": review.reason,
        "correct_class": correct_class,
        "crop": crop,
        "object_fully_visible": fully_visible,
        "basis": review.basis,
        "seen": review.seen,
        "sha256": review.sha256,
        "note": review.note,
    }


def fields_to_write(review: Review, before: Mapping[str, object]) -> dict[str, object]:
    """The fields to write: those with a value, and those that the file has with null."""
    fields = review_fields(review)
    if isinstance(fields["crop"], list):
        fields["crop"] = tuple(fields["crop"])  # edited_text replaces a tuple as a whole
    if not isinstance(review.verdict, Cropped) and before.get("verdict") == review.verdict.kind:
        # means nothing here, and stays unchanged
        fields["object_fully_visible"] = before.get("object_fully_visible")
    return {name: value for name, value in fields.items() if value is not None or before.get(name, ...) is None}


def parse_reviews(text: str, wnid: str, where: str, classes: ClassTable) -> list[Vote]:
    """The verdicts in the text of a review file for class `wnid`.

    Raises CleansetError with `where` and the line for anything that is not exactly the format: bad syntax, two
    verdicts on one image, an unknown key, a missing or wrong value, nothing at all, and whatever `parse_yaml` refuses.
    """
    content, lines, _ = parse_remembered(text, where)
    if content is None:
        # what a full disk, a crash or a failed merge leaves must not take the verdicts of a class away
        if "#" not in text:
            raise CleansetError(
                f"{where}: no verdicts; expected verdicts, or a comment in a file without any: restore the earlier "
                "version, or remove the file"
            )
        return []
    check_not_newer(content, where)
    files = _table(content, f"{where}, line 1", f"expected the {classes.key_column} of the file, {wnid}:")
    if list(files) != [wnid]:
        line = min(lines.values(), default=1)
        raise CleansetError(
            f"{where}, line {line}: found {cut(', '.join(files), MAX_VALUE) or 'nothing'}; expected one entry, {wnid}, "
            "the file's name"
        )
    votes = dict[str, Vote]()
    for name, entry in _table(files[wnid], f"{where}, line {lines[wnid,]}", "expected image ids").items():
        line = lines[wnid, name]
        fields = _table(entry, f"{where}, line {line}", "expected verdict: …")
        place = f"{where}, line {line}, {name}"
        review = parse_review(fields, place)
        if isinstance(review.verdict, Rejected):
            check_other_class(review.verdict.correct_class, wnid, classes, place)
        # what names no image is refused with the index, which knows all images
        image_id = parse_image_id(name, classes) or name
        if image_id in votes:
            raise CleansetError(f"{place}: {image_id} a second time; expected one verdict on each image: remove one")
        votes[image_id] = Vote(wnid, image_id, review, place)
    return list(votes.values())


def check_other_class(key: str | None, wnid: str, classes: ClassTable, place: str) -> None:
    """Raise CleansetError unless a correct class is a class other than that of the file, `wnid`."""
    if key is not None and key not in classes.indices:
        raise CleansetError(f"{place}: correct_class {shown(key)}; expected {classes.expected_key}")
    if key == wnid:
        raise CleansetError(f"{place}: correct_class {wnid}, the class of this file; expected another one")


def _table(value: object, place: str, expected: str) -> dict[str, object]:
    if not isinstance(value, dict):
        found = "a list" if isinstance(value, list) else "nothing" if value is None else shown(value)
        raise CleansetError(f"{place}: found {found}; {expected}")
    return value


CODE = (
    "image_ids.py", "images/boxes.py", "plumbing/validation.py", "plumbing/yaml_files.py", "review/file_format.py",
    "review/verdicts.py", "vocabulary.py",
)  # fmt: skip
"""The files of the package that decide on the verdicts in a text."""

_ROWS = TypeAdapter(list[tuple[str, str, ReviewEntry]])
"""Cached verdicts: image id, place in the file, and entry."""


def usual_verdict_files(package: Path = PACKAGE) -> KeptFiles:
    """The verdicts that all editions on this machine share."""
    return kept_files("verdicts", CODE, f"{pydantic.VERSION} {yaml.__version__}", package)


def kept_votes(text: str, wnid: str, where: str, classes: ClassTable, kept: KeptFiles) -> list[Vote]:
    """As `parse_reviews`, and with its errors. A text with an error is not kept, and parsed each time."""
    name = sha256(f"{wnid} {classes.is_imagenet}\n{text}".encode())
    rows = kept.read_value(name, _ROWS)
    if rows is None:
        found = parse_reviews(text, wnid, where, classes)
        new = [(each.image_id, each.where.removeprefix(where), review_fields(each.review)) for each in found]
        kept.keep(name, json.dumps(new).encode())
        return found
    found = [Vote(wnid, image_id, _review(entry), f"{where}{place}") for image_id, place, entry in rows]
    for vote in found:  # the text may have been parsed for other classes
        if isinstance(vote.review.verdict, Rejected):
            check_other_class(vote.review.verdict.correct_class, wnid, classes, vote.where)
    return found
