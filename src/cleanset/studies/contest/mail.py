"""Entries as they come by mail, a file or a folder, made into drafts of lines of the log."""

from pathlib import Path

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.plumbing.files import read_bytes, sha256_of
from cleanset.plumbing.validation import validate
from cleanset.studies.contest.entries import ENTRIES, RULES, WHOLE
from cleanset.studies.contest.images import image_entry
from cleanset.studies.contest.lists import clean_digest, clean_images, eligibility_list, list_digest
from cleanset.studies.contest.log import DraftLine
from cleanset.studies.contest.objects import files_in, read_content
from cleanset.studies.contest.rules import ContestRules

CONTEST_YAML = "contest.yaml"
DEFENCE_YAML = "defence.yaml"
MANIFEST_YAML = "manifest.yaml"
MAX_IMAGE_BYTES = 100_000_000


def draft_of(path: Path, edition: Edition) -> DraftLine:
    """The entry in a file or in the folder of a defence or submission.

    Raises CleansetError for a link, an unknown entry, and a file that is missing or belongs to no entry.
    """
    if (path / MANIFEST_YAML).is_file():
        return _submission(path)
    if (path / DEFENCE_YAML).is_file():
        return _defence(path)
    content = read_content(path)
    if path.name == CONTEST_YAML:
        return DraftLine(RULES, _whole(content, edition, path))
    kind, data = _kind_of(path, content)
    images = data.get(kind)
    files = {}
    if kind in ("controls", "examples") and isinstance(images, dict):
        there = {sha256_of(each): each for each in files_in(path.parent / "images").values()}
        files = {digest: each for digest, each in there.items() if digest in images}
    return DraftLine(kind, data, files)


def _whole(content: dict[str, object], edition: Edition, where: Path) -> dict[str, object]:
    """The rules with every default, and the digests of the clean set and of the eligibility list, if there is one."""
    rules = validate(ContestRules, content, where)
    found: dict[str, object] = rules.model_dump(mode="json", exclude_none=True)
    if clean_images(edition):
        published = list_digest(eligibility_list(edition, rules.groups()))
        found |= {"clean_set": clean_digest(edition), "published": published}
    return found


def _kind_of(path: Path, content: dict[str, object]) -> tuple[str, dict[str, object]]:
    """The kind of the entry in a file, and its data. Raises CleansetError for an unknown entry."""
    kinds = [key for key in content if key in ENTRIES]
    # a judge's file and lists by image have the name of their kind as one of their own keys
    data = content if kinds and kinds[0] in WHOLE else content[kinds[0]] if len(content) == len(kinds) == 1 else None
    if not isinstance(data, dict):
        raise CleansetError(
            f"{path}: not an entry of a contest; expected {MANIFEST_YAML} or {DEFENCE_YAML} in a folder, "
            f"{CONTEST_YAML}, or a file with one of {', '.join(ENTRIES)} at its top"
        )
    return kinds[0], data


def _submission(folder: Path) -> DraftLine:
    """All images beside a manifest.yaml."""
    paths = files_in(folder)
    data = read_content(paths.pop(MANIFEST_YAML))
    images = [image_entry(name, read_bytes(path, MAX_IMAGE_BYTES), path) for name, path in paths.items()]
    files = {str(image["sha256"]): paths[str(image["file"])] for image in images}
    return DraftLine("submission", data | {"images": images}, files)


def _defence(folder: Path) -> DraftLine:
    """A defence, with all files of its program: those beside the defence.yaml."""
    paths = files_in(folder)
    data = read_content(paths.pop(DEFENCE_YAML))
    digests = {name: sha256_of(path) for name, path in paths.items()}
    program = data.get("program")
    if isinstance(program, dict):
        program["files"] = digests
    elif paths:
        raise CleansetError(f"{min(paths)}: beside a defence that is a model; expected {DEFENCE_YAML} alone")
    return DraftLine("defence", data, {digest: paths[name] for name, digest in digests.items()})
