"""Entries as they come by mail, a file or a folder with signatures beside it, made into drafts of lines of the log."""

import base64
import datetime
from dataclasses import replace
from pathlib import Path

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.plumbing.files import read_bytes, read_text, sha256, sha256_of
from cleanset.plumbing.json_files import parse_json
from cleanset.plumbing.validation import validate
from cleanset.studies.contest.eligibility_lists import clean_digest, clean_images, eligibility_list, list_digest
from cleanset.studies.contest.entries import Defence, SubmissionManifest
from cleanset.studies.contest.images import Measures
from cleanset.studies.contest.log_lines import ENTRIES, RULES, WHOLE, DraftLine, Signature, entry_of
from cleanset.studies.contest.model_defences import seen_by_model
from cleanset.studies.contest.objects import read_content, refuse_link, visible
from cleanset.studies.contest.rules import ContestRules

CONTEST_YAML = "contest.yaml"
DEFENCE_YAML = "defence.yaml"
MANIFEST_YAML = "manifest.yaml"
MAX_IMAGE_BYTES = 100_000_000
MAX_DEPTH = 100
"""Folders in one another of a defence: a path in an entry has 200 characters."""


def draft_of(path: Path, edition: Edition) -> DraftLine:
    """The entry in a file or in the folder of a defence or submission, with the signatures beside it.

    Raises CleansetError for a link, an unknown entry, and a file that is missing or belongs to no entry.
    """
    return replace(unsigned_draft(path, edition), signatures=_signatures_beside(path))


def _signatures_beside(path: Path) -> dict[str, Signature]:
    """The signatures of an entry, in files named after it, by the names of those who have signed it."""
    path = path.absolute()
    found = {}
    for each in sorted(path.parent.glob("*.sig")):
        name = each.name.removeprefix(f"{path.name}.").removesuffix(".sig")
        if each.name == f"{path.name}.{name}.sig" and "." not in name:
            refuse_link(each)
            content = parse_json(read_text(each, "sign again"), str(each), "a signature of cleanset contest sign")
            found[name] = validate(Signature, content, each)
    return found


def unsigned_draft(path: Path, edition: Edition) -> DraftLine:
    """The same without signatures."""
    refuse_link(path)
    for name, kind in ((MANIFEST_YAML, "submission"), (DEFENCE_YAML, "defence")):
        if (path / name).is_file():
            return _draft_of_folder(path, path / name, kind, edition)
    content = read_content(path)
    files: dict[str, Path] = {}
    kind, data = (RULES, _whole(content, edition, path)) if path.name == CONTEST_YAML else kind_of(path, content)
    shown_images = data.get(kind)
    if kind in ("controls", "examples") and isinstance(shown_images, dict):
        there = {sha256_of(each): each for each in visible(path.parent / "images") if each.is_file()}
        files = {digest: each for digest, each in there.items() if digest in shown_images}
        data = {kind: {digest: _with_mask(path, digest, one) for digest, one in shown_images.items()}}
    return DraftLine(kind, data, files=files)


def _whole(content: dict[str, object], edition: Edition, where: Path) -> dict[str, object]:
    """The rules with every default, and the digests of the clean set and of the eligibility list, if there is one."""
    rules = validate(ContestRules, content, where)
    found: dict[str, object] = rules.model_dump(mode="json", exclude_none=True)
    if clean_images(edition):
        published = list_digest(eligibility_list(edition, rules.groups()))
        found |= {"clean_set": clean_digest(edition), "published": published}
    return found


def kind_of(path: Path, content: dict[str, object]) -> tuple[str, dict[str, object]]:
    """The kind of the entry in a file, and its data. Raises CleansetError for an unknown entry."""
    kinds = [key for key in content if key in ENTRIES]
    data = content[kinds[0]] if len(kinds) == 1 else None
    if not isinstance(data, dict):
        raise CleansetError(
            f"{path}: not an entry of a contest; expected {MANIFEST_YAML} or {DEFENCE_YAML} in a folder, "
            f"{CONTEST_YAML}, or a file with one of {', '.join(ENTRIES)} at its top"
        )
    # a list by judge or image has the name of its kind itself
    return kinds[0], content if kinds[0] in WHOLE else data


def _with_mask(path: Path, digest: str, one: object) -> object:
    mask = path.parent / "masks" / f"{digest}.png"
    if not isinstance(one, dict) or not mask.is_file():
        return one
    refuse_link(mask)
    return one | {"mask": base64.b64encode(read_bytes(mask)).decode()}


def _draft_of_folder(folder: Path, file: Path, kind: str, edition: Edition) -> DraftLine:
    data = read_content(file)
    there = {each.relative_to(folder).as_posix(): each for each in _below(folder, flat=kind == "submission")}
    del there[file.name]
    if kind == "submission":
        data = data | {"images": [image_entry(path) for path in there.values()]}
    entry = entry_of(kind, data, datetime.date.min, signers=(), where=file)
    if isinstance(entry, SubmissionManifest):
        return DraftLine(kind, data, files={each.sha256: there[each.file] for each in entry.images})
    assert isinstance(entry, Defence)
    named = {each.path: each.sha256 for each in entry.files}
    for name in sorted(there.keys() ^ named.keys()):
        raise CleansetError(f"{folder / name}: expected the files that {file.name} names, and no others")
    model = data.get("model")
    if entry.model is not None and isinstance(model, dict):
        data = data | {"model": model | seen_by_model(edition, entry.model.role)}
    return DraftLine(kind, data, files={digest: there[name] for name, digest in named.items()})


def image_entry(path: Path) -> dict[str, str | int]:
    """An image of a submission, as the log has it. Raises CleansetError for an image that cannot be submitted."""
    data = read_bytes(path)
    if len(data) > MAX_IMAGE_BYTES:
        raise CleansetError(f"{path}: {len(data):,} bytes; expected at most {MAX_IMAGE_BYTES:,}")
    digest = sha256(data)
    found = Measures().of(path, digest, data)
    if found.problem is not None:
        raise CleansetError(f"{path}: {found.problem}")
    size = {"width": found.width, "height": found.height}
    return {"file": path.name, "sha256": digest, "pixels_sha256": found.pixels_sha256, **size}


def _below(folder: Path, *, flat: bool) -> list[Path]:
    """The files in a folder and in those below it; `flat`: raise CleansetError for a folder in it."""
    found: list[Path] = []
    folders = [folder]
    while folders:
        for path in visible(folders.pop()):
            if not path.is_dir():
                found.append(path)
            elif flat:
                raise CleansetError(f"{path}: a folder; expected all images beside {MANIFEST_YAML}: put them there")
            elif len(path.relative_to(folder).parts) > MAX_DEPTH:
                raise CleansetError(f"{path}: more than {MAX_DEPTH} folders in one another; expected fewer")
            else:
                folders.append(path)
    return sorted(found)
