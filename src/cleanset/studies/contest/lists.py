"""The lists of images that decide which defences are eligible: the edition's finished sets, and an unpublished one."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.plumbing.files import sha256, sha256_of
from cleanset.scoring.logits import Groups
from cleanset.sets.folder import read_entries
from cleanset.sets.manifest import MANIFEST, Entry
from cleanset.studies.contest.objects import files_in
from cleanset.studies.contest.rules import ContestRules

UNPUBLISHED_LIST = "unpublished"
"""The folder, beside contest.yaml, of the list that is not published; git ignores it."""


def edition_of(folder: Path) -> Edition:
    """The edition two folders above a contest."""
    return Edition(folder / ".." / "..")


class EligibilityImage(NamedTuple):
    """An image whose group is known."""

    path: Path
    group: str


EligibilityList = Mapping[str, EligibilityImage]
"""By SHA-256, sorted."""


def clean_images(edition: Edition) -> list[tuple[Path, Entry]]:
    """The images of the edition's finished sets, set by set, with their entries."""
    folders = sorted(path.parent for path in (edition.folder / "data" / "export").glob(f"*/{MANIFEST}"))
    return [(folder / entry.file, entry) for folder in folders for entry in read_entries(folder)]


def eligibility_list(edition: Edition, groups: Groups) -> EligibilityList:
    """The images of the edition's finished sets whose class is in one of the groups."""
    found: dict[str, EligibilityImage] = {}
    for path, entry in clean_images(edition):
        group = groups.group_of(entry.class_index)
        if group is not None:
            # an image in the sets of several models counts once
            found.setdefault(entry.file_sha256, EligibilityImage(path, groups.names[group]))
    if not found:
        raise CleansetError(
            f"{edition.folder / 'data' / 'export'}: no image of a class of the contest; expected some in the finished "
            "sets: run dvc pull, or name other classes in contest.yaml"
        )
    return dict(sorted(found.items()))


def unpublished_list(folder: Path, groups: Groups) -> EligibilityList:
    """The images of a list that is not published: a folder with one folder for each group, by its name.

    Raises CleansetError for a group without an image.
    """
    paths = {group: files_in(folder / group).values() for group in groups.names}
    for group in groups.names:
        if not paths[group]:
            raise CleansetError(f"{folder / group}: no image; expected a folder of images for each of the two groups")
    images = [EligibilityImage(path, group) for group in groups.names for path in paths[group]]
    return dict(sorted((sha256_of(each.path), each) for each in images))


def list_digest(images: EligibilityList) -> str:
    """The digest of a list in contest.yaml: of a line `<group> <SHA-256>` for each image, sorted."""
    return sha256("".join(sorted(f"{each.group} {digest}\n" for digest, each in images.items())).encode())


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


def checked_list(contest: Path, rules: ContestRules, unpublished: Path | None) -> EligibilityList:
    """The unpublished list that contest.yaml names, in a folder or in `unpublished/` beside it; empty without one.

    Raises CleansetError for another list than the one that it names, and as `unpublished_list` does.
    """
    if rules.unpublished is None:
        return {}
    folder = unpublished or contest / UNPUBLISHED_LIST
    found = unpublished_list(folder, rules.groups())
    if list_digest(found) != rules.unpublished:
        raise CleansetError(
            f"{folder}: a list with the digest {list_digest(found)}; expected the one that contest.yaml names as "
            f"unpublished, {rules.unpublished}: cleanset contest check prints its line before the contest begins"
        )
    return found
