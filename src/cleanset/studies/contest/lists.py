"""The lists of images that decide which defences are eligible: the edition's finished sets, and an unpublished one."""

from collections.abc import Mapping
from pathlib import Path

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.plumbing.files import sha256, sha256_of
from cleanset.scoring.logits import Groups
from cleanset.sets.folder import read_entries
from cleanset.sets.manifest import MANIFEST, Entry
from cleanset.studies.contest.objects import files_in
from cleanset.studies.contest.rules import ContestRules

UNPUBLISHED_LIST = "unpublished"
"""The folder, beside the log, of the list that is not published; git ignores it."""


def edition_of(folder: Path) -> Edition:
    """The edition two folders above a contest."""
    return Edition(folder / ".." / "..")


EligibilityList = Mapping[str, tuple[Path, str]]
"""The path of each image and its group, by SHA-256, sorted."""


def clean_images(edition: Edition) -> list[tuple[Path, Entry]]:
    """The images of the edition's finished sets, set by set, with their entries."""
    folders = sorted(path.parent for path in (edition.folder / "data" / "export").glob(f"*/{MANIFEST}"))
    return [(folder / entry.file, entry) for folder in folders for entry in read_entries(folder)]


def eligibility_list(edition: Edition, groups: Groups) -> EligibilityList:
    """The images of the edition's finished sets whose class is in one of the groups."""
    found: dict[str, tuple[Path, str]] = {}
    for path, entry in clean_images(edition):
        group = groups.group_of(entry.class_index)
        if group is not None:
            # an image in the sets of several models counts once
            found.setdefault(entry.file_sha256, (path, groups.names[group]))
    if not found:
        raise CleansetError(
            f"{edition.folder / 'data' / 'export'}: no image of a class of the contest; expected some in the finished "
            "sets: run dvc pull, or name other classes in contest.yaml"
        )
    return dict(sorted(found.items()))


def unpublished_list(contest: Path, groups: Groups) -> EligibilityList:
    """The images in `unpublished/` beside the log, which has one folder for each group, by its name; empty without it.

    Raises CleansetError for a group without an image.
    """
    folder = contest / UNPUBLISHED_LIST
    found: dict[str, tuple[Path, str]] = {}
    for group in groups.names if folder.exists() else ():
        paths = files_in(folder / group).values()
        if not paths:
            raise CleansetError(f"{folder / group}: no image; expected a folder of images for each of the two groups")
        found |= {sha256_of(path): (path, group) for path in paths}
    return dict(sorted(found.items()))


def list_digest(images: EligibilityList) -> str:
    """The digest of a list in contest.yaml: of a line `<group> <SHA-256>` for each image, sorted."""
    return sha256("".join(sorted(f"{group} {digest}\n" for digest, (_, group) in images.items())).encode())


def clean_digest(edition: Edition) -> str:
    """The digest of the finished sets in contest.yaml: of the SHA-256 of each image's pixels, on a line, sorted."""
    pixels = {entry.pixels_sha256 for _, entry in clean_images(edition)}
    return sha256("".join(f"{each}\n" for each in sorted(pixels)).encode())


def check_published(edition: Edition, rules: ContestRules) -> None:
    """Raise CleansetError for other finished sets, or another eligibility list, than the first line of a log names."""
    if rules.clean_set is None:
        return
    there = (clean_digest(edition), list_digest(eligibility_list(edition, rules.groups())))
    if there != (rules.clean_set, rules.published):
        raise CleansetError(
            f"{edition.folder / 'data' / 'export'}: sets and a list with the digests {', '.join(there)}; expected "
            f"{rules.clean_set} and {rules.published}, as the contest's first line names: dvc checkout"
        )


def checked_list(contest: Path, rules: ContestRules) -> EligibilityList:
    """The unpublished list that the first line of a log names; empty without one.

    Raises CleansetError for another list, and as `unpublished_list` does.
    """
    if rules.unpublished is None:
        return {}
    found = unpublished_list(contest, rules.groups())
    if list_digest(found) != rules.unpublished:
        raise CleansetError(
            f"{contest / UNPUBLISHED_LIST}: a list with the digest {list_digest(found)}; expected {rules.unpublished}, "
            "as the contest's first line names"
        )
    return found
