"""Entries as they come by mail, a file or a folder, made into drafts of lines of the log."""

from pathlib import Path

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.plumbing.files import read_bytes, sha256, sha256_of
from cleanset.plumbing.validation import validate
from cleanset.studies.contest.entries import ENTRIES, RULES, WHOLE
from cleanset.studies.contest.images import Measures
from cleanset.studies.contest.lists import clean_digest, clean_images, eligibility_list, list_digest
from cleanset.studies.contest.log import DraftLine
from cleanset.studies.contest.objects import read_content, refuse_link, visible
from cleanset.studies.contest.rules import ContestRules

CONTEST_YAML = "contest.yaml"
DEFENCE_YAML = "defence.yaml"
MANIFEST_YAML = "manifest.yaml"
MAX_IMAGE_BYTES = 100_000_000


def draft_of(path: Path, edition: Edition) -> DraftLine:
    """The entry in a file or in the folder of a defence or submission.

    Raises CleansetError for a link, an unknown entry, and a file that is missing or belongs to no entry.
    """
    refuse_link(path)
    if (path / MANIFEST_YAML).is_file():
        return _submission(path)
    if (path / DEFENCE_YAML).is_file():
        return _defence(path)
    content = read_content(path)
    if path.name == CONTEST_YAML:
        return DraftLine(RULES, _whole(content, edition, path))
    kind, data = _kind_of(path, content)
    images = data.get(kind)
    if kind in ("controls", "examples") and isinstance(images, dict):
        there = {sha256_of(each): each for each in visible(path.parent / "images") if each.is_file()}
        files = {digest: each for digest, each in there.items() if digest in images}
        return DraftLine(kind, data, files)
    return DraftLine(kind, data)


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
    data = read_content(folder / MANIFEST_YAML)
    paths = [each for each in visible(folder) if each.name != MANIFEST_YAML]
    for path in paths:
        if path.is_dir():
            raise CleansetError(f"{path}: a folder; expected all images beside {MANIFEST_YAML}: put them there")
    images = [image_entry(path) for path in paths]
    files = {str(image["sha256"]): path for image, path in zip(images, paths, strict=True)}
    return DraftLine("submission", data | {"images": images}, files)


def image_entry(path: Path) -> dict[str, str | int]:
    """An image of a submission, as the log has it. Raises CleansetError for an image that cannot be submitted."""
    data = read_bytes(path)
    if len(data) > MAX_IMAGE_BYTES:
        raise CleansetError(f"{path}: {len(data):,} bytes; expected at most {MAX_IMAGE_BYTES:,}")
    digest = sha256(data)
    found = Measures().of(path, digest, lambda: data)
    if found.problem is not None:
        raise CleansetError(f"{path}: {found.problem}")
    size = {"width": found.width, "height": found.height}
    return {"file": path.name, "sha256": digest, "pixels_sha256": found.pixels_sha256, **size}


def _defence(folder: Path) -> DraftLine:
    """A defence, with all files of its program: those beside the defence.yaml."""
    data = read_content(folder / DEFENCE_YAML)
    paths = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if not path.is_dir()}
    for path in folder.rglob("*"):
        refuse_link(path)
    del paths[DEFENCE_YAML]
    program = data.get("program")
    if not isinstance(program, dict):
        for path in paths.values():
            raise CleansetError(f"{path}: beside a defence that is a model; expected {DEFENCE_YAML} alone")
        return DraftLine("defence", data)
    digests = {name: sha256_of(path) for name, path in sorted(paths.items())}
    files = {digest: paths[name] for name, digest in digests.items()}
    return DraftLine("defence", data | {"program": program | {"files": digests}}, files)
