"""Differences between two exports; with reasons between two releases, which is the command `diff`."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cleanset.dataset.ilsvrc import class_indices, label_names
from cleanset.sets.description import reasons_of_rejection, release_of
from cleanset.sets.folder import CROISSANT, REJECTED_CSV, read_entries, read_regular_file
from cleanset.sets.manifest import Entry


def size_of(entries: Sequence[Entry]) -> str:
    """The numbers of images and classes of a set, in words."""
    images, classes = len(entries), len({entry.wnid for entry in entries})
    return f"{images:,} {'image' if images == 1 else 'images'} of {classes:,} {'class' if classes == 1 else 'classes'}"


@dataclass(frozen=True, slots=True)
class ManifestChange:
    """One difference in an image of a class, with its values in the two manifests.

    `what` is one of CHANGES: source means other bytes of the original; file means other bytes of the exported file,
    though source and crop are the same.
    """

    wnid: str
    image_id: str
    what: str
    a: str
    b: str


CHANGES = (
    "added", "dropped", "crop", "rank", "tier", "confidence", "source_confidence", "labels", "reviewers", "source",
    "source_check", "file",
)  # fmt: skip


def compare_exports(a: Iterable[Entry], b: Iterable[Entry]) -> list[ManifestChange]:
    """Compare two manifests image by image; by class, then id. The name of the model does not count."""
    of_a = {(entry.wnid, entry.image_id): entry for entry in a}
    of_b = {(entry.wnid, entry.image_id): entry for entry in b}
    return [change for key in sorted(of_a.keys() | of_b.keys()) for change in _changes(of_a.get(key), of_b.get(key))]


def _changes(a: Entry | None, b: Entry | None) -> Iterator[ManifestChange]:
    if a is None or b is None:
        for entry, what in ((a, "dropped"), (b, "added")):
            if entry is not None:
                texts = ("", _place(entry)) if what == "added" else (_place(entry), "")
                yield ManifestChange(entry.wnid, entry.image_id, what, *texts)
        return
    for what, of_a, of_b in (
        ("crop", _crop(a), _crop(b)),
        ("rank", str(a.rank), str(b.rank)),
        ("tier", a.tier, b.tier),
        ("confidence", _probability(a.confidence), _probability(b.confidence)),
        ("source_confidence", _probability(a.source_confidence), _probability(b.source_confidence)),
        ("labels", _labels(a), _labels(b)),
        ("reviewers", str(a.reviewers), str(b.reviewers)),
        ("source", a.source_sha256, b.source_sha256),
        ("source_check", a.source_check, b.source_check),
    ):
        if of_a != of_b:
            yield ManifestChange(a.wnid, a.image_id, what, of_a, of_b)
    # another crop or source makes another file, and is listed already
    explained = a.crop != b.crop or a.source_sha256 != b.source_sha256
    if not explained and (a.file, a.file_sha256, a.pixels_sha256) != (b.file, b.file_sha256, b.pixels_sha256):
        yield ManifestChange(a.wnid, a.image_id, "file", a.file_sha256, b.file_sha256)


def _place(entry: Entry) -> str:
    return f"rank {entry.rank}, {entry.tier}"


def _probability(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.9g}"


def _labels(entry: Entry) -> str:
    """The original label and the reassessed ones."""
    return f"{entry.ilsvrc_class}; {' '.join(map(str, entry.real_classes))}"


def _crop(entry: Entry) -> str:
    return "whole" if entry.crop is None else " ".join(map(str, entry.crop))


def by_class(changes: Sequence[ManifestChange]) -> Mapping[str, list[ManifestChange]]:
    """The changes of each class that has some."""
    grouped: dict[str, list[ManifestChange]] = {}
    for change in changes:
        grouped.setdefault(change.wnid, []).append(change)
    return grouped


NOT_A_CANDIDATE = "not a candidate"
UNKNOWN = f"unknown, because {REJECTED_CSV} is missing"

_SHOWN = {"added": "in", "dropped": "out", "crop": "other crop", "source": "other source", "file": "other file"}
"""The changes that are listed image by image; of the others only the number is."""
_SIGNS = {"added": "+", "dropped": "-"}


@dataclass(frozen=True, slots=True)
class ReleasedSet:
    """A release as it lies in a folder: its version, the lines of its manifest, and why other candidates are not in."""

    path: Path
    version: str
    entries: Sequence[Entry]
    rejected: Mapping[tuple[str, str], str] | None

    def reason(self, change: ManifestChange) -> str:
        """The reason why the image of a change is not in this set."""
        if self.rejected is None:
            return UNKNOWN
        return self.rejected.get((change.wnid, change.image_id), NOT_A_CANDIDATE)


@dataclass(frozen=True, slots=True)
class ReleaseDiff:
    """The two sets, the changes from one to the other, and for each image in or out why it was or is left out."""

    a: ReleasedSet
    b: ReleasedSet
    changes: Sequence[ManifestChange]
    reasons: Mapping[ManifestChange, str]


def run(a: Path, b: Path) -> ReleaseDiff:
    """Compare two releases, each the folder of a set or its manifest. Raises CleansetError if one cannot be read."""
    before, after = _read(a), _read(b)
    changes = compare_exports(before.entries, after.entries)
    left_out = {"added": before, "dropped": after}
    found = {change: left_out[change.what].reason(change) for change in changes if change.what in left_out}
    return ReleaseDiff(before, after, changes, found)


def render(diff: ReleaseDiff, as_json: bool) -> str:
    """The output of the command."""
    return json.dumps(_content(diff), indent=2) if as_json else "\n".join(_lines(diff))


def _read(path: Path) -> ReleasedSet:
    entries = read_entries(path)
    folder = path if path.is_dir() else path.parent
    croissant, rejected = folder / CROISSANT, folder / REJECTED_CSV
    return ReleasedSet(
        path,
        release_of(read_regular_file(croissant)).version if croissant.is_file() else "of unknown version",
        entries,
        _reasons(rejected) if rejected.is_file() else None,
    )


def _reasons(path: Path) -> Mapping[tuple[str, str], str]:
    return reasons_of_rejection(read_regular_file(path).decode("utf-8", "replace"), str(path))


def _counts(diff: ReleaseDiff) -> dict[str, int]:
    """Numbers of images that came in, went out or changed in a way that is listed, or in other ways only."""
    counts = Counter(_SHOWN[change.what] for change in diff.changes if change.what in _SHOWN)
    shown = {(change.wnid, change.image_id) for change in diff.changes if change.what in _SHOWN}
    others = {(change.wnid, change.image_id) for change in diff.changes} - shown
    return {**{name: counts[name] for name in _SHOWN.values()}, "otherwise listed": len(others)}


def _by_reason(diff: ReleaseDiff, what: str) -> dict[str, int]:
    counts = Counter(reason for change, reason in diff.reasons.items() if change.what == what)
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def _lines(diff: ReleaseDiff) -> Iterator[str]:
    for side, release in (("A", diff.a), ("B", diff.b)):
        models = ", ".join(sorted({entry.model for entry in release.entries})) or "empty"
        yield f"{side}  {release.path}"
        yield f"   {models} {release.version}: {size_of(release.entries)}"
    yield ""
    yield from (f"{name:<17}{number:>7,}" for name, number in _counts(diff).items())
    for title, what in (("Why they are out:", "dropped"), ("Why they were not in:", "added")):
        if counts := _by_reason(diff, what):
            yield f"{title} {', '.join(f'{reason} {number:,}' for reason, number in counts.items())}"
    shown = by_class([change for change in diff.changes if change.what in _SHOWN])
    for wnid, changes in shown.items():
        yield ""
        yield f"{wnid} {label_names()[class_indices()[wnid]]}"
        for change in changes:
            yield f"  {_SIGNS.get(change.what, '~')} {change.image_id}  {_what(diff, change)}"


def _what(diff: ReleaseDiff, change: ManifestChange) -> str:
    if change.what == "added":
        return f"{change.b}; was left out: {diff.reasons[change]}"
    if change.what == "dropped":
        return f"{change.a}; left out: {diff.reasons[change]}"
    return f"{_SHOWN[change.what]}: {_short(change.a)} -> {_short(change.b)}"


def _short(text: str) -> str:
    return f"{text[:12]}..." if len(text) == 64 else text


def _content(diff: ReleaseDiff) -> dict[str, Any]:
    return {
        **{
            side: {"path": str(release.path), "version": release.version, "images": len(release.entries)}
            for side, release in (("a", diff.a), ("b", diff.b))
        },
        "same": not diff.changes,
        "counts": _counts(diff),
        "out_by_reason": _by_reason(diff, "dropped"),
        "in_by_reason": _by_reason(diff, "added"),
        "changes": [asdict(change) | {"reason": diff.reasons.get(change)} for change in diff.changes],
    }
