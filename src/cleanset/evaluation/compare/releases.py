"""The command `diff`: differences between two releases, or exports, with reasons."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path

from cleanset.classes import ClassTable
from cleanset.plumbing.files import sha256
from cleanset.plumbing.json_files import JsonObject
from cleanset.sets.description import UNPUBLISHED, Rejection, Release, rejections
from cleanset.sets.fetching.releases import opened
from cleanset.sets.folder import REJECTED_CSV, one_set, read_regular_file, read_release, read_set
from cleanset.sets.manifest import MANIFEST, Entry
from cleanset.statistics.basics import most_first
from cleanset.statistics.formats import counted


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """The lines for people, the content of the JSON, and whether both sides are the same."""

    lines: list[str]
    content: JsonObject
    same: bool

    def render(self, as_json: bool) -> str:
        """The output of the command."""
        return json.dumps(self.content, indent=2) if as_json else "\n".join(self.lines)


def short(text: str) -> str:
    """A SHA-256 by its first digits, anything else whole."""
    return f"{text[:12]}..." if len(text) == 64 else text


def about(entries: Sequence[Entry], version: str) -> str:
    """The models of a set, its version, and its numbers of images and classes, in words."""
    models = ", ".join(sorted({entry.model for entry in entries})) or "empty"
    classes = {entry.wnid for entry in entries}
    size = f"{counted(len(entries), 'image')} of {counted(len(classes), 'class')}"
    return f"   {models}{version}: {size}"


@dataclass(frozen=True, slots=True)
class ManifestChange:
    """One difference in an image of a class."""

    wnid: str
    image_id: str
    what: str
    """added, dropped, crop, rank, tier, confidence, source_confidence, labels, reviewers, source (other bytes of the
    original), source_check, or file (other bytes of the exported file though source and crop are the same); for your
    own images also name (of the same bytes) and class."""

    a: str
    """The value in the first manifest."""

    b: str
    """The value in the second manifest."""

    @property
    def place(self) -> tuple[str, str]:
        """Class and image."""
        return self.wnid, self.image_id


def compare_exports(
    a: Iterable[Entry], b: Iterable[Entry], own_classes: tuple[ClassTable, ClassTable] | None = None
) -> list[ManifestChange]:
    """Compare two manifests image by image; by class, then id. The name of the model does not count.

    `own_classes`: the tables of both if the images are your own, which may have been renamed and moved: they are known
    by their bytes.
    """
    pairs = _pairs_by_place(list(a), list(b)) if own_classes is None else _pairs_by_bytes(list(a), list(b))
    return [
        ManifestChange(wnid=wnid, image_id=image_id, what=what, a=of_a, b=of_b)
        for (wnid, image_id), (before, after) in sorted(
            ((_place(after or before), (before, after)) for before, after in pairs), key=lambda pair: pair[0]
        )
        for what, of_a, of_b in _changes(before, after, own_classes)
    ]


_Pair = tuple[Entry | None, Entry | None]
"""An image in both manifests, or in one of them."""


def _place(entry: Entry | None) -> tuple[str, str]:
    """Class and id."""
    return ("", "") if entry is None else (entry.wnid, entry.image_id)


def _pairs_by_place(a: Sequence[Entry], b: Sequence[Entry]) -> list[_Pair]:
    """The images of the same class and id."""
    of_a, of_b = ({_place(entry): entry for entry in entries} for entries in (a, b))
    return [(of_a.get(place), of_b.get(place)) for place in sorted(of_a.keys() | of_b.keys())]


def _pairs_by_bytes(a: Sequence[Entry], b: Sequence[Entry]) -> list[_Pair]:
    """The images of the same bytes, then those of the same class and id among the others."""
    of_a, of_b = map(_by_bytes, (a, b))
    same = of_a.keys() & of_b.keys()
    others = ([entry for entry in entries if entry.source_sha256 not in same] for entries in (a, b))
    return [*((of_a[digest], of_b[digest]) for digest in sorted(same)), *_pairs_by_place(*others)]


def _by_bytes(entries: Sequence[Entry]) -> dict[str, Entry]:
    """The entries by the SHA-256 of their originals, without those that a manifest has twice."""
    times = Counter(entry.source_sha256 for entry in entries)
    return {entry.source_sha256: entry for entry in entries if times[entry.source_sha256] == 1}


def _changes(
    a: Entry | None, b: Entry | None, own_classes: tuple[ClassTable, ClassTable] | None
) -> Iterator[tuple[str, str, str]]:
    if a is None or b is None:
        place = "".join(
            f"rank {entry.rank}{f', {entry.tier}' if entry.tier else ''}" for entry in (a, b) if entry is not None
        )
        yield ("added", "", place) if a is None else ("dropped", place, "")
        return
    if a.image_id != b.image_id:
        yield "name", a.image_id, b.image_id
    if a.wnid != b.wnid:
        yield "class", a.wnid, b.wnid
    tables = own_classes or (None, None)
    of_a = _shown_values(a, tables[0])
    of_b = _shown_values(b, tables[1])
    yield from ((what, of_a[what], of_b[what]) for what in of_a if of_a[what] != of_b[what])
    # another crop or source makes another file, and another place another name; they are listed already
    is_explained = a.crop != b.crop or a.source_sha256 != b.source_sha256
    has_same_name = a.file == b.file or _place(a) != _place(b)
    if not is_explained and not (has_same_name and _content(a) == _content(b)):
        yield "file", a.file_sha256, b.file_sha256


def _content(entry: Entry) -> tuple[str, str]:
    return entry.file_sha256, entry.pixels_sha256


def _shown_values(entry: Entry, own_classes: ClassTable | None) -> dict[str, str]:
    """The values of an image that are compared, as people are shown them.

    `own_classes`: the table of your own classes, whose indices change with each new class.
    """
    label, *real = (entry.ilsvrc_class, *entry.real_classes)
    names = {index: own_classes.keys[index] if own_classes else str(index) for index in (label, *real)}
    confidences = {
        what: "unknown" if value is None else f"{value:.9g}"
        for what, value in (("confidence", entry.confidence), ("source_confidence", entry.source_confidence))
    }
    return {
        "crop": "whole" if entry.crop is None else " ".join(map(str, entry.crop)),
        "rank": str(entry.rank),
        "tier": entry.tier or "none",
        **confidences,
        "labels": f"{names[label]}; {' '.join(names[index] for index in real)}",
        "reviewers": str(entry.reviewers),
        "source": entry.source_sha256,
        "source_check": entry.source_check,
    }


NOT_A_CANDIDATE = "not a candidate"
UNKNOWN_REJECTED = f"unknown, because {REJECTED_CSV} is missing"

# the changes that are listed image by image; the others are only counted
_SHOWN = {"added": "in", "dropped": "out", "crop": "other crop", "source": "other source", "file": "other file"}
_SHOWN_OF_OWN = _SHOWN | {"name": "other name", "class": "other class"}


@dataclass(frozen=True, slots=True)
class ReleasedSet:
    """A release in a folder: the lines of its manifest, and why other candidates are not in.

    `sha256`: digest of its manifest, which distinguishes releases of one version.
    """

    path: Path
    classes: ClassTable
    release: Release
    sha256: str
    entries: Sequence[Entry]
    rejected: Mapping[tuple[str, str], Rejection] | None
    """By class key and image id; None without their table."""

    @classmethod
    def read(cls, path: Path) -> "ReleasedSet":
        """Read a release: the folder or tar of a set, or its manifest."""
        source = one_set(opened(path))
        manifest = source / MANIFEST if source.is_dir() else source
        found = read_set(source)
        rejected = None
        if (file := manifest.parent / REJECTED_CSV).is_file():
            rejected = rejections(read_regular_file(file).decode("utf-8", "replace"), str(file), found.classes)
        return cls(
            path=path,
            classes=found.classes,
            release=read_release(manifest.parent),
            sha256=sha256(read_regular_file(manifest)),
            entries=found.entries,
            rejected=rejected,
        )

    @property
    def name(self) -> str:
        """Version, date and digest of the manifest, for people."""
        version = "of unknown version" if self.release.version == UNPUBLISHED else self.release.version
        dated = f" of {self.release.date}" if self.release.date else ""
        return f" {version}{dated}, manifest {short(self.sha256)}"

    def rejections_of(
        self, changes: Iterable[ManifestChange], having: "ReleasedSet"
    ) -> dict[ManifestChange, Rejection]:
        """Why the images of some changes, which another set has, are not in this one, and their names here.

        Your own images are known by their bytes, under any name and in any class.
        """
        digests = {_place(entry): entry.source_sha256 for entry in having.entries}
        by_place = self.rejected or {}
        by_bytes = {each.sha256: each for _, each in sorted(by_place.items(), reverse=True)}
        why = UNKNOWN_REJECTED if self.rejected is None else NOT_A_CANDIDATE
        found = {}
        for change in changes:
            digest = digests[change.place]
            there = by_place.get(change.place)
            is_same = there is not None and there.sha256 in (None, digest)
            other = there if is_same else by_bytes.get(digest, there)
            found[change] = other or Rejection(image_id=change.image_id, reason=why, sha256=None)
        return found


def diff(a: Path, b: Path) -> ComparisonResult:
    """Compare two releases, each a path for `ReleasedSet.read`. Raises CleansetError if it cannot be read."""
    before = ReleasedSet.read(a)
    after = ReleasedSet.read(b)
    tables = before.classes, after.classes
    # ImageNet's images have their names for ever, and some are there twice
    are_own = not any(table.is_imagenet for table in tables)
    changes = compare_exports(before.entries, after.entries, tables if are_own else None)
    shown = _SHOWN_OF_OWN if are_own else _SHOWN
    added, dropped = ([change for change in changes if change.what == what] for what in ("added", "dropped"))
    rejected = before.rejections_of(added, after) | after.rejections_of(dropped, before)
    reasons = {change: each.reason for change, each in rejected.items()}
    listed = [change for change in changes if change.what in shown]
    # an image that is listed does not count a second time
    others = {change.place for change in changes} - {change.place for change in listed}
    times = Counter(shown[change.what] for change in listed)
    counts = {**{name: times[name] for name in shown.values()}, "otherwise listed": len(others)}
    out, new = (_by_frequency(reasons[each] for each in reasons if each.what == what) for what in ("dropped", "added"))
    lines = []
    for side, release in (("A", before), ("B", after)):
        lines += [f"{side}  {release.path}", about(release.entries, release.name)]
    lines += ["", *(f"{name:<17}{number:>7,}" for name, number in counts.items())]
    for title, of_reason in (("Why they are out:", out), ("Why they were not in:", new)):
        if of_reason:
            lines.append(f"{title} {', '.join(f'{reason} {number:,}' for reason, number in of_reason.items())}")
    for wnid, of_class in groupby(listed, lambda change: change.wnid):
        # a class may be in one of the tables alone
        table = after.classes if wnid in after.classes.indices else before.classes
        lines += ["", f"{wnid} {table.labels[table.indices[wnid]]}"]
        lines += [_line(change, rejected.get(change)) for change in of_class]
    content = {
        **{
            side: {
                "path": str(release.path),
                "version": release.release.version,
                "date": release.release.date,
                "manifest_sha256": release.sha256,
                "images": len(release.entries),
            }
            for side, release in (("a", before), ("b", after))
        },
        "same": not changes,
        "counts": counts,
        "out_by_reason": out,
        "in_by_reason": new,
        "changes": [asdict(change) | {"reason": reasons.get(change)} for change in changes],
    }
    return ComparisonResult(lines, content, not changes)


def _by_frequency(reasons: Iterable[str]) -> dict[str, int]:
    return most_first(Counter(reasons))


def _line(change: ManifestChange, rejection: Rejection | None) -> str:
    reason = ""
    if rejection is not None:
        named = "" if rejection.image_id == change.image_id else f", there called {rejection.image_id}"
        reason = f"{rejection.reason}{named}"
    sign, what = {
        "added": ("+", f"{change.b}; was left out: {reason}"),
        "dropped": ("-", f"{change.a}; left out: {reason}"),
    }.get(change.what, ("~", f"{_SHOWN_OF_OWN[change.what]}: {short(change.a)} -> {short(change.b)}"))
    return f"  {sign} {change.image_id}  {what}"
