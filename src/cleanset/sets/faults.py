"""What is wrong with a finished set, or with its manifest alone."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from cleanset.ilsvrc import class_indices, parse_picture_name
from cleanset.sets.manifest import MANIFEST, Entry, file_name
from cleanset.tiers import TIERS

_SHA256 = re.compile(r"[0-9a-f]{64}")
_ROLE = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Fault:
    """`what` is the kind, `file` where it is; `found` and `expected` are SHA-256 or a few words.

    Kinds: manifest (a line contradicts itself or another), twice (one picture in two places), missing, surplus,
    misplaced (in another folder), changed (other bytes, other pixels), reencoded (other bytes, the same pixels),
    undecodable, pixels (the right bytes, but other pixels than those of the manifest), unlike (a file that is made
    from the manifest says something else). `line` is that of the manifest which the fault concerns, if one does.
    """

    what: str
    file: str
    found: str
    expected: str
    line: int | None = None

    def __str__(self) -> str:
        file = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in self.file)
        return f"{self.what:<11}  {file}: {_short(self.found)}; expected {_short(self.expected)}"


def _short(text: str) -> str:
    """A SHA-256 by its first digits, anything else whole."""
    return f"{text[:12]}..." if _SHA256.fullmatch(text) else text


def manifest_faults(entries: Sequence[Entry]) -> list[Fault]:
    """Where the lines of a manifest contradict themselves, or one another; in their order."""
    faults = [
        _of_line(number, *pair) for number, entry in enumerate(entries, start=2) for pair in _contradictions(entry)
    ]
    return [*faults, *_between(entries), *_in_two_places(entries)]


def _of_line(number: int, found: str, expected: str) -> Fault:
    return Fault("manifest", f"{MANIFEST}, line {number}", found, expected, number)


def _contradictions(entry: Entry) -> Iterator[tuple[str, str]]:
    index = class_indices().get(entry.wnid)
    parsed = parse_picture_name(f"{entry.image_id}.JPEG")
    if not _ROLE.fullmatch(entry.model):
        yield f"model {entry.model}", "small letters, digits and _"
    if index is None:
        yield f"wnid {entry.wnid}", "one of the 1,000 of ILSVRC2012"
    elif index != entry.class_index:
        yield f"class index {entry.class_index}", f"{index} of {entry.wnid}"
    if parsed is None or parsed[1]:
        yield f"image id {entry.image_id}", "ILSVRC2012_val_ and eight digits"
    if entry.file != (name := file_name(entry.wnid, entry.image_id, entry.crop)):
        yield f"file {entry.file}", name
    if entry.rank < 1:
        yield f"rank {entry.rank}", "at least 1"
    if entry.tier not in TIERS:
        yield f"tier {entry.tier}", " or ".join(TIERS)
    if not 0 <= entry.confidence <= 1:
        yield f"confidence {entry.confidence:g}", "0 to 1"
    yield from _of_sums(entry)
    yield from _of_crop(entry)


def _of_sums(entry: Entry) -> Iterator[tuple[str, str]]:
    for name in ("source_sha256", "file_sha256", "pixels_sha256"):
        if not _SHA256.fullmatch(getattr(entry, name)):
            yield f"{name} {getattr(entry, name)}", "64 hexadecimal digits"


def _of_crop(entry: Entry) -> Iterator[tuple[str, str]]:
    if entry.crop is None:
        if entry.file_sha256 != entry.source_sha256:
            yield f"file {entry.file_sha256[:12]}... of a whole picture", f"its source {entry.source_sha256[:12]}..."
        return
    left, top, right, bottom = entry.crop
    if not (0 <= left < right and 0 <= top < bottom):
        yield f"crop box {' '.join(map(str, entry.crop))}", "left < right and top < bottom, from 0"


def _between(entries: Sequence[Entry]) -> Iterator[Fault]:
    """Other models, ranks that are missing or doubled, lines that are not sorted."""
    ranks: dict[str, int] = {}
    highest = -1
    for number, entry in enumerate(entries, start=2):
        if entry.model != entries[0].model:
            yield _of_line(number, f"model {entry.model}", f"{entries[0].model} as in line 2")
        expected = ranks.get(entry.wnid, 0) + 1
        if entry.rank >= 1 and entry.rank != expected:
            yield _of_line(number, f"rank {entry.rank} in {entry.wnid}", f"rank {expected}")
        if entry.class_index < highest:
            yield _of_line(number, f"class {entry.class_index} after {highest}", "lines sorted by class and rank")
        ranks[entry.wnid] = max(expected, entry.rank)
        highest = max(highest, entry.class_index)


def _in_two_places(entries: Iterable[Entry]) -> Iterator[Fault]:
    """The same picture in two classes, or twice in one: by its id, by the bytes of its source, by its pixels."""
    seen: dict[tuple[str, str], Entry] = {}
    for number, entry in enumerate(entries, start=2):
        keys = [("id", entry.image_id), ("source", entry.source_sha256), ("pixels", entry.pixels_sha256)]
        first = next((seen[key] for key in keys if key in seen), None)
        if first is not None:
            yield Fault("twice", entry.file, f"the same picture as {first.file}", "one place for each", number)
        for key in keys:
            seen.setdefault(key, entry)
