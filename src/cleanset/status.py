"""The command `status`: what has changed in an edition and around it, and the command that takes each change.

DVC sees a change of the files that dvc.yaml names. It does not see your own images, which images.sha256 stands for,
ImageNet's archives, which raw.md5 stands for, nor the code of a custom model. A file whose size, times and inode are
as before is not read again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import StringConstraints, TypeAdapter, ValidationError

from cleanset.dataset.archives import read_md5_list
from cleanset.dataset.folder import LabelledImages, read_images
from cleanset.dataset.pinned import check_pinned, read_pinned
from cleanset.edition.dvc_files import is_whole
from cleanset.edition.models import changed_files
from cleanset.edition.params import Dataset, Params, read_params
from cleanset.edition.paths import Edition
from cleanset.edition.repository import scm_problem
from cleanset.edition.stage_inputs import REPAIR, misread_inputs, projects_in
from cleanset.errors import CleansetError
from cleanset.plumbing.files import (
    FileState,
    check_no_links,
    file_state,
    is_there,
    md5_of,
    read_bytes,
    read_text,
    sha256_of,
    write_bytes,
)
from cleanset.plumbing.progress import found_in_threads
from cleanset.plumbing.validation import first_names
from cleanset.review.decided import checked_votes
from cleanset.scoring.fingerprints import sources_sha256
from cleanset.scoring.record import ScoreRecord, read_record
from cleanset.sets.folder import read_entries
from cleanset.sets.made_from import outdated_sets
from cleanset.sets.manifest import MANIFEST
from cleanset.tables import INDEX, read_table

_State = tuple[FileState, Annotated[str, StringConstraints(pattern=r"[0-9a-f]+")]]
"""The state of a file, and its digest."""

_STATES = TypeAdapter(dict[str, _State])


@dataclass(frozen=True, slots=True)
class EditionStatus:
    """What has changed in an edition, in lines that name the command."""

    unseen: list[str]
    """Changes that dvc repro does not notice: images, archives, brought scores, the code of custom models, a broken
    dvc.lock, refused reviews, a git repository that DVC is configured to ignore.
    """

    pending: list[str]
    """What the next dvc repro brings up to date."""

    images: int
    """Number of images, or of archives, that were compared."""

    read: int
    """How many of them had to be read."""


def run(edition: Edition) -> EditionStatus:
    """Compare an edition with what it pins. Raises CleansetError for an edition that cannot be read."""
    params = read_params(edition.folder)
    known = _Digests(edition.folder / ".dvc" / "tmp" / "cleanset-images.json")
    try:
        unseen = list(_changed_images(edition, params.dataset, _own_images(edition, params.dataset), known))
    except CleansetError as error:
        unseen = [str(error)]
    else:
        # without images, as on a disk that is not there now, the digests of before stay
        known.save()
    unseen += [*_changed_scores(edition, params), *_changed_modules(edition, params)]
    unseen += [*_broken_lock(edition), *_refused_reviews(edition, params)]
    unseen += [line for project in projects_in(edition.folder) for line in misread_inputs(project)]
    if problem := scm_problem(edition.folder):
        unseen.append(problem)
    return EditionStatus(
        unseen=unseen, pending=list(_pending(edition, params)), images=known.compared, read=known.files_read
    )


def render(status: EditionStatus) -> str:
    """The lines that the command prints."""
    lines = [*status.unseen, *status.pending]
    end = "" if lines else "; nothing has changed"
    compared = f"files of images compared with their digests: {status.images:,}, of them read: {status.read:,}"
    return "\n".join([*lines, f"{compared}{end}"])


class _Digests:
    """The digests of files by their paths, kept next to DVC's own; a file that has not moved is not read again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known = _read_states(path)
        self._now: dict[str, _State] = {}
        self.files_read = 0

    @property
    def compared(self) -> int:
        """The number of files."""
        return len(self._now)

    def of(self, paths: Mapping[str, Path], kind: str) -> dict[str, str]:
        """The SHA-256 of files by their names, or the MD5, as `kind` says."""
        states = {name: file_state(path.stat()) for name, path in paths.items()}
        moved = [name for name, state in states.items() if self._known.get(f"{kind} {name}", ())[:1] != (state,)]
        digest = {"sha256": sha256_of, "md5": md5_of}[kind]
        found = dict(zip(moved, found_in_threads(lambda name: digest(paths[name]), moved, "status"), strict=True))
        self.files_read += len(moved)
        digests = {name: found.get(name) or self._known[f"{kind} {name}"][1] for name in paths}
        # of a file that changed while it was read the old state is kept, so that it is read again
        self._now |= {f"{kind} {name}": (states[name], digest) for name, digest in digests.items()}
        return digests

    def save(self) -> None:
        """Keep the digests, if DVC's folder is there."""
        if self._now != self._known and self._path.parent.parent.is_dir():
            check_no_links(self._path.parents[2], self._path.parent)
            write_bytes(self._path, _STATES.dump_json(self._now))


def _read_states(path: Path) -> dict[str, _State]:
    """The kept digests; none from a file that is missing or damaged."""
    try:
        return _STATES.validate_json(read_bytes(path))
    except (OSError, CleansetError, ValidationError):
        return {}


def _own_images(edition: Edition, dataset: Dataset) -> LabelledImages | None:
    """The images that are there, if they are your own. Raises CleansetError for a folder that no stage reads."""
    if not dataset.is_own:
        return None
    labels, names = (edition.path(name) if name else None for name in (dataset.labels, dataset.names))
    return read_images(edition.path(dataset.images), labels, names, classes_are_folders=dataset.classes_are_folders)


def _changed_images(edition: Edition, dataset: Dataset, found: LabelledImages | None, known: _Digests) -> Iterator[str]:
    images = edition.path(dataset.images)
    if found is None:
        yield from _changed_archives(edition, known)
        return
    digests = known.of({name: location.path for name, location in found.locations.items()}, "sha256")
    try:
        check_pinned(str(images), read_pinned(edition.images_sha256), digests)
    except CleansetError as error:
        yield str(error)


def _changed_archives(edition: Edition, known: _Digests) -> Iterator[str]:
    """Lines on the archives in raw.md5 that are there with another MD5; a folder has no line in it."""
    if not is_there(edition.raw_md5):
        return
    pinned = read_md5_list(edition.raw_md5)
    paths = {name: edition.path(name) for name in pinned if edition.path(name).is_file()}
    for name, found in known.of(paths, "md5").items():
        if found != pinned[name]:
            yield f"{edition.path(name)}: MD5 {found}, expected {pinned[name]} as in {edition.raw_md5}: fetch it again"


def _changed_scores(edition: Edition, params: Params) -> Iterator[str]:
    """A line for each table of scores, list or file of weights that is not what params.yaml pins."""
    for role, model in params.models.items():
        if model.source == "scores" and model.file is not None and model.sha256 is not None:
            path = edition.path(model.file)
            found = sha256_of(path) if is_there(path) else "missing"
            if found != model.sha256:
                yield (
                    f"{path}: {found}, expected the scores of {role} with SHA-256 {model.sha256}: restore them, or run "
                    "cleanset edition --accept --scores FILE with a new table"
                )
        elif model.module is None:
            for name in changed_files(model, edition.folder):
                yield (
                    f"{edition.path(name)}: not what params.yaml pins for {role}: restore it, or correct params.yaml "
                    "if this one is meant"
                )


def _changed_modules(edition: Edition, params: Params) -> Iterator[str]:
    """A line for each custom model in the edition's folder whose code is not what is pinned, or computed its scores."""
    for role, model in params.models.items():
        if model.module is None:
            continue
        if changed := changed_files(model, edition.folder):
            yield (
                f"{first_names(changed, 3)}: not what params.yaml pins of what {model.name} opens: restore it, or run "
                "cleanset models --pin, then dvc repro"
            )
        found = sources_sha256(model.module, edition.folder)
        if model.module_sha256 is not None:
            # what is pinned is among the params of stage score
            if found != model.module_sha256:
                yield (
                    f"{model.module}: it, or a module that it imports here, is not what params.yaml pins for {role}: "
                    "restore it, or run cleanset models --pin, then dvc repro"
                )
            continue
        path = edition.scored_with(role)
        record = read_record(path) if is_there(path) else None
        if isinstance(record, ScoreRecord) and found != record.module_sha256:
            yield (
                f"{model.module}: it, or a module that it imports here, is not what computed the scores of {role}: run "
                f"dvc repro --single-item --force score@{role}, then dvc repro"
            )


def _broken_lock(edition: Edition) -> Iterator[str]:
    lock = edition.folder / "dvc.lock"
    if is_there(lock) and not is_whole(read_text(lock, "save it as UTF-8")):
        yield f"{lock}: cut off, or a merge in conflict; run cleanset doctor"


def _refused_reviews(edition: Edition, params: Params) -> Iterator[str]:
    """The first verdict that the stages would refuse, such as one on other bytes; none before the first dvc repro."""
    if not is_there(edition.index):
        return
    classes = edition.read_classes()
    try:
        checked_votes(edition, params, read_table(edition.index, INDEX, classes), classes)
    except CleansetError as error:
        yield str(error)


def _pending(edition: Edition, params: Params) -> Iterator[str]:
    missing = [role for role in params.models if not is_there(edition.export(role) / MANIFEST)]
    for role in missing:
        yield f"{edition.export(role)}: no set yet; run dvc repro, or dvc pull export@{role}"
    yield from outdated_sets(edition)
    known = _Digests(edition.folder / ".dvc" / "tmp" / "cleanset-sets.json")
    for role in params.models:
        if role not in missing:
            yield from _changed_files(edition.export(role), known)
    known.save()


def _changed_files(folder: Path, known: _Digests) -> Iterator[str]:
    """A line if images of a set are missing, or have other bytes than its manifest says."""
    try:
        expected = {entry.file: entry.file_sha256 for entry in read_entries(folder)}
    except CleansetError as error:
        yield str(error)
        return
    found = known.of({str(folder / file): folder / file for file in expected if (folder / file).is_file()}, "sha256")
    wrong = sorted(file for file, digest in expected.items() if found.get(str(folder / file)) != digest)
    if wrong:
        # DVC may take them for unchanged, and restore them from a cache that has the same damage
        yield f"{folder}: missing, or not as in its manifest: {first_names(wrong, 3)}; {REPAIR}"
