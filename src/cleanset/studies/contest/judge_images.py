"""The files of the images that judges see: submitted ones, controls and examples, found by their SHA-256."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from cleanset.errors import CleansetError
from cleanset.files import sha256
from cleanset.studies.contest.files import ContestFiles
from cleanset.studies.contest.folder_checks import file_sha256
from cleanset.studies.contest.reading import IMAGES, visible

FORMATS = ("PNG", "JPEG")
MASKS = "masks"


def own_digests(contest: Path) -> dict[Path, str]:
    """The SHA-256 of each file in judges/images/, sorted by path."""
    return {path: file_sha256(path) for path in visible(contest / "judges" / IMAGES) if path.is_file()}


def image_paths(
    contest: Path, files: ContestFiles, wanted: Iterable[str], digests: Mapping[Path, str] | None = None
) -> dict[str, Path]:
    """The files by SHA-256: submitted images where their manifests have them, others in judges/images/.

    `digests`: those of `own_digests`, where they are known. Raises CleansetError for an image that is nowhere.
    """
    found = {
        image.sha256: contest / str(submission) / IMAGES / image.file
        for submission in files.submissions
        for image in submission.manifest.images
    }
    own = {digest: path for path, digest in (own_digests(contest) if digests is None else digests).items()}
    for digest in sorted(wanted):
        if not found.setdefault(digest, own.get(digest, Path())).is_file():
            raise CleansetError(
                f"{contest / 'judges' / IMAGES}: no file with SHA-256 {digest[:12]}…; expected every control, example "
                "and submitted image: add it, or dvc pull"
            )
    return found


def read_image(paths: Mapping[str, Path], digest: str) -> bytes:
    """The bytes of an image. Raises CleansetError if they are no longer those."""
    data = paths[digest].read_bytes()
    if sha256(data) != digest:
        raise CleansetError(f"{paths[digest]}: SHA-256 {sha256(data)}; expected {digest}: the file has changed")
    return data


def mask_path(contest: Path, digest: str) -> Path:
    """Where the mask of a control image's largest object lies, if there is one: a PNG, white where the object is."""
    return contest / "judges" / MASKS / f"{digest}.png"
