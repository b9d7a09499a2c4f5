"""The command `verify`: the folder of a finished set against its manifest and checksums, and its signature."""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath

from cleanset.edition.paths import edition_of_set
from cleanset.errors import CleansetError
from cleanset.plumbing.files import sha256
from cleanset.plumbing.machine import available_cores
from cleanset.plumbing.validation import first_names
from cleanset.sets.archive import SignatureError, signer, unpack
from cleanset.sets.catalogues import citation_cff, zenodo_json
from cleanset.sets.description import UNPUBLISHED, Release, name_of, notices_of, release_of
from cleanset.sets.folder import (
    CARD,
    CHECKSUMS,
    CITATION,
    CROISSANT,
    DESCRIPTIONS,
    METADATA,
    METADATA_LINES,
    OPTIONAL,
    SIGNATURE,
    ZENODO,
    checksums,
    derived_names,
    derived_texts,
    manifest_text,
    one_set,
    read_checksums,
    read_regular_file,
)
from cleanset.sets.manifest import MANIFEST, Entry
from cleanset.sets.manifest_checks import CheckedManifest, Problem, check_manifest, duplicates

BATCH_FILES = 32
"""Files that a thread takes at a time."""

_RELEASE = re.compile(r"[a-z][a-z0-9_]*@[0-9]+\.[0-9]+\.[0-9]+")
_PUBLISHED_NAME = re.compile(r"cleanset-[a-z][a-z0-9_]*-[0-9]+\.[0-9]+\.[0-9]+")

_WITNESSES = {MANIFEST: CROISSANT, METADATA: MANIFEST, METADATA_LINES: MANIFEST}
"""By file, another that it must agree with: where that one has its SHA-256 in CHECKSUMS, CHECKSUMS is at fault."""


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of verifying a set."""

    folder: str
    """The folder or tar as given."""

    model: str
    """By the manifest."""

    version: str
    """By the Croissant description; empty if it lacks one."""

    date: str
    """By the Croissant description; empty if it lacks one."""

    images: int
    """Number of images in the manifest."""

    good: int
    """Number of these without a problem."""

    decoded: bool
    """Whether the pixels of every image were decoded, not only of those whose bytes differ."""

    card: bool
    """Whether the set has a data card."""

    with_images: bool
    """Whether it was published with its images."""

    signed: bool
    """Whether it has a signature."""

    signer: str | None
    """Who signed it, if the signature was checked and holds."""

    notices: list[str]
    """The limits of the set, in sentences."""

    problems: list[Problem]


_Placed = tuple[int, Entry, str]
"""A line of the manifest, its entry, and its file: where it should be, or in another folder."""


def run(folder: Path, decode: bool, signers: Path | None = None, expected: str | None = None) -> Verification:
    """Compare the folder of an export with its manifest, and its descriptions with the checksums.

    If the SHA-256 of a file matches the manifest, its pixels are taken to match, too; they are
    decoded only where it differs, or with `decode`. With `signers`, a public key or allowed signers, the set must be
    signed by one of them, and with `expected`, as in "standard@1.0.0", be that release. `folder` may be the tar of a
    published set, too: then the tar must have the bytes that publish gives for its contents. A folder or tar with a
    name as given by publish must be of that release. Raises CleansetError if no manifest or no `signers` can be read.
    """
    if expected is not None and not _RELEASE.fullmatch(expected):
        raise CleansetError(f"--expect {expected}: not a release; expected MODEL@VERSION, such as standard@1.0.0")
    if expected is not None and signers is None:
        raise CleansetError(
            f"--expect {expected}: without a signature, anybody may have written the version; add --signature"
        )
    if not folder.is_file() or folder.suffix != ".tar":
        inside = one_set(folder)
        # the name that was given, and that of the folder which a link leads to
        found = _verify(inside, decode, signers)
        names = [inside.absolute().name, inside.resolve().name]
        found.problems.extend(_of_edition(inside))
    else:
        with unpack(folder) as (inside, same_bytes):
            found = _verify(one_set(inside), decode, signers)
            names = [folder.stem, inside.name]
        if not same_bytes:
            other = Problem("unlike", folder.name, "other bytes", "those that publish gives for its files")
            found.problems.append(other)
    found.problems.extend(_of_release(found, names, expected))
    return replace(found, folder=str(folder))


def _of_edition(folder: Path) -> Iterator[Problem]:
    """The problems of a set in an edition that would give another one today."""
    edition = edition_of_set(folder)
    if edition is None:
        return
    # most sets that people verify are outside of an edition, and need none of what reads one
    from cleanset.edition.stage_inputs import REPAIR, misread_stages
    from cleanset.sets.made_from import REMEDY, outdated

    if changed := outdated(folder):
        before = f"made before a change of {first_names(changed, 3)}"
        yield Problem("outdated", MANIFEST, before, f"today's set: {REMEDY}")
    for found in misread_stages(edition.folder, f"data/export/{folder.absolute().name}"):
        yield Problem("outdated", MANIFEST, found.text, f"today's set: {REPAIR}")


def _of_release(found: Verification, names: Sequence[str], expected: str | None) -> Iterator[Problem]:
    """Problems of a set of another release than `expected`, or than the name of its folder or tar says."""
    release = f"{found.model or 'no model'}@{found.version}"
    if expected not in (None, release):
        yield Problem("release", CROISSANT, release, str(expected))
    # a set that was rebuilt from a manifest alone does not know its version, whatever its folder is called
    name = f"{name_of(found.model)}-{found.version}"
    if found.version != UNPUBLISHED:
        for other in sorted({each for each in names if _PUBLISHED_NAME.fullmatch(each) and each != name}):
            yield Problem("release", other, release, f"the release of this name, or the name {name}")


def _verify(folder: Path, decode: bool, signers: Path | None) -> Verification:
    read = manifest_text(folder / MANIFEST)
    manifest = check_manifest(read.text, read.where, read.classes)
    problems = [*manifest.problems, *duplicates(manifest.entries, manifest.classes)]
    files, empty, others = _contents(folder)
    placed = _placed(manifest.entries, files)
    described = {*files, *(read_checksums(folder)[1] if CHECKSUMS in files else ())}
    # a METADATA that is listed but lost is a fault, not a set without images
    with_images = bool(placed) or CHECKSUMS not in files or not described.isdisjoint((METADATA, METADATA_LINES))
    with_images = with_images or not manifest.lines
    lost = dict(manifest.entries) if with_images else {}
    for line, _, _ in placed:
        del lost[line]
    problems += [Problem("missing", each.file, "nothing", each.file_sha256, line=line) for line, each in lost.items()]
    problems += _of_files(folder, placed, decode)
    known = {file for _, _, file in placed} | {*DESCRIPTIONS, CHECKSUMS, SIGNATURE} | set(manifest.invalid_files)
    problems += [Problem("surplus", file, "a file", "nothing") for file in sorted(files - known)]
    problems += [Problem("surplus", name, "an empty folder", "nothing") for name in sorted(empty)]
    problems += [Problem("surplus", name, "not a regular file", "nothing") for name in sorted(others)]
    release = release_of(read_regular_file(folder / CROISSANT) if CROISSANT in files else b"", manifest.classes)
    # what is made from a faulty manifest differs for that reason alone
    texts = {} if manifest.problems else _derived_texts(manifest, files, release, with_images=with_images)
    derived = list(_derived_problems(folder, files, texts))
    problems += derived
    needed = sorted(
        [MANIFEST, *derived_names(manifest.classes, with_images=with_images, is_empty=not manifest.entries)]
    )
    problems += _checksum_problems(folder, files, needed, agreeing=not manifest.problems and not derived)
    whose = _signer(folder, files, signers) if signers else None
    if isinstance(whose, Problem):
        problems.append(whose)
    bad = {problem.line for problem in problems}
    good = sum(line not in bad for line in manifest.entries) if with_images else 0
    return Verification(
        folder=str(folder),
        model=next((entry.model for entry in manifest.entries.values()), ""),
        version=release.version,
        date=release.date,
        images=manifest.lines,
        good=good,
        decoded=decode,
        card=CARD in files,
        with_images=with_images,
        signed=SIGNATURE in files,
        signer=whose if isinstance(whose, str) else None,
        notices=notices_of(list(manifest.entries.values()), release),
        problems=problems,
    )


def render(verification: Verification, as_json: bool) -> str:
    """The lines that the command prints: one for each problem and a summary; or JSON."""
    if as_json:
        return json.dumps(asdict(verification), indent=2)
    if verification.with_images:
        summary = f"{verification.folder}: {verification.good:,} of {verification.images:,} images are good"
    else:
        summary = f"{verification.folder}: published without its {verification.images:,} images"
    if verification.problems:
        summary += f"; problems: {len(verification.problems):,}"
    if not verification.card:
        summary += f"; no data card ({CARD})"
    if verification.signer:
        of = f" of {verification.date}" if verification.date else ""
        summary += f"; signed: {verification.model} {verification.version}{of}, by {verification.signer}"
    elif verification.signed:
        is_bad = any(problem.what == "signature" for problem in verification.problems)
        summary += "; signature not valid" if is_bad else "; signature not checked (--signature)"
    return "\n".join([*map(str, verification.problems), summary, *verification.notices])


def _contents(folder: Path, prefix: str = "") -> tuple[set[str], set[str], set[str]]:
    """Paths of the files, of the empty folders, and of pipes, devices and links that lead to no file.

    Relative to `folder`. Left out is what Finder puts into any folder, and git and the Hub into that of a repository.
    """
    files = set()
    empty = set()
    others = set()
    with os.scandir(folder) as there:
        for entry in there:
            name = prefix + entry.name
            # a link to a folder might lead back here, and is not part of a set
            if entry.is_dir(follow_symlinks=False):
                inside = _contents(Path(entry.path), f"{name}/")
                files |= inside[0]
                empty |= inside[1] if any(inside) else {f"{name}/"}
                others |= inside[2]
            elif entry.name != ".DS_Store" and name not in (".gitattributes", ".gitignore"):
                (files if entry.is_file() else others).add(name)
    return files, empty, others


def _placed(entries: Mapping[int, Entry], files: set[str]) -> list[_Placed]:
    """For each line its file: in its place, or else one of the same name that no line claims."""
    claimed = {entry.file for entry in entries.values()}
    elsewhere: dict[str, list[str]] = {}
    for file in sorted(files - claimed - {*DESCRIPTIONS, CHECKSUMS, SIGNATURE}):
        elsewhere.setdefault(PurePosixPath(file).name, []).append(file)
    placed = []
    for line, entry in entries.items():
        if entry.file in files:
            placed.append((line, entry, entry.file))
        # a file in another folder is misplaced, which is one problem, not one missing and one surplus
        elif same_name := elsewhere.get(PurePosixPath(entry.file).name):
            placed.append((line, entry, same_name.pop(0)))
    return placed


def _of_files(folder: Path, placed: Sequence[_Placed], decode: bool) -> list[Problem]:
    """Read every file, on all cores: reading, hashing and decoding release the lock."""
    batches = [placed[start : start + BATCH_FILES] for start in range(0, len(placed), BATCH_FILES)]
    with ThreadPoolExecutor(available_cores()) as pool:
        found = pool.map(lambda batch: [each for one in batch for each in _of_file(folder, one, decode)], batches)
        return [problem for problems in found for problem in problems]


def _of_file(folder: Path, placed: _Placed, decode: bool) -> Iterator[Problem]:
    line, entry, file = placed
    if file != entry.file:
        yield Problem("misplaced", file, "here", entry.file, line=line)
    try:
        data = read_regular_file(folder / file)
    except OSError as error:
        yield Problem("unreadable", file, str(error.strerror), entry.file_sha256, line=line)
        return
    found = sha256(data)
    same_bytes = found == entry.file_sha256
    if same_bytes and not decode:
        return
    pixels = _pixels(data)
    if isinstance(pixels, ValueError):
        yield Problem("undecodable", file, str(pixels), entry.file_sha256, line=line)
    elif not same_bytes:
        same_pixels = pixels == entry.pixels_sha256
        yield Problem("reencoded" if same_pixels else "changed", file, found, entry.file_sha256, line=line)
    elif pixels != entry.pixels_sha256:
        yield Problem("pixels", file, pixels, entry.pixels_sha256, line=line)


def _pixels(data: bytes) -> str | ValueError:
    """SHA-256 of the pixels, or the error of decoding them."""
    # imported here, because most sets are verified by their bytes, without decoding an image
    from cleanset.images import codec

    try:
        return codec.pixels_sha256(codec.decode(data))
    except ValueError as error:
        return error


def _signer(folder: Path, files: set[str], signers: Path) -> str | Problem:
    """The signer of CHECKSUMS, or the problem with the signature."""
    if SIGNATURE not in files:
        return Problem("signature", SIGNATURE, "nothing", f"a signature of {CHECKSUMS}")
    if CHECKSUMS not in files:
        return Problem("signature", SIGNATURE, "a signature of nothing", f"one of {CHECKSUMS}")
    try:
        return signer(read_regular_file(folder / CHECKSUMS), read_regular_file(folder / SIGNATURE), signers)
    except SignatureError as error:
        return Problem("signature", SIGNATURE, str(error), f"one of {CHECKSUMS} by a key in {signers}")


def _derived_texts(
    manifest: CheckedManifest, files: set[str], release: Release, *, with_images: bool
) -> dict[str, str]:
    """The texts of the files that are made from a manifest, by name; of ZENODO and CITATION, if they are there."""
    entries = list(manifest.entries.values())
    texts = derived_texts(manifest.text, entries, release, with_images=with_images)
    if ZENODO in files and entries:
        texts[ZENODO] = zenodo_json(entries, release, with_images=with_images)
    if CITATION in files and release.about:
        texts[CITATION] = citation_cff(release, with_images=with_images)
    return texts


def _derived_problems(folder: Path, files: set[str], texts: Mapping[str, str]) -> Iterator[Problem]:
    """Problems of the files that are made from the manifest: missing, or made from another one."""
    for name, text in texts.items():
        if name not in files:
            yield Problem("missing", name, "nothing", f"what is made from {MANIFEST}")
        elif read_regular_file(folder / name) != text.encode():
            yield Problem("unlike", name, "something else", f"what is made from {MANIFEST}")


def _checksum_problems(folder: Path, files: set[str], needed: Sequence[str], agreeing: bool) -> Iterator[Problem]:
    """Problems of the files that describe the set, compared with CHECKSUMS, which must list those in `needed`.

    `agreeing`: the manifest is valid, and what is made from it is unchanged.
    """
    if CHECKSUMS not in files:
        yield Problem("missing", CHECKSUMS, "nothing", "the digests of the files that describe the set")
        return
    text, listed = read_checksums(folder)
    if checksums(listed) != text or not set(needed) <= set(listed) <= {*needed, *OPTIONAL}:
        yield Problem("unlike", CHECKSUMS, "something else", f"a SHA-256 and a name for each of {', '.join(needed)}")
        return
    found = {name: sha256(read_regular_file(folder / name)) for name in listed if name in files}
    for name, digest in listed.items():
        witness = _WITNESSES.get(name)
        if name not in files:
            yield Problem("missing", name, "nothing", digest)
        elif found[name] == digest:
            continue
        elif agreeing and witness in found and found[witness] == listed[witness]:
            correct = f"{found[name][:12]}..., with which {witness} agrees"
            yield Problem("changed", CHECKSUMS, f"{digest[:12]}... of {name}", correct)
        else:
            yield Problem("changed", name, found[name], f"{digest[:12]}... as in {CHECKSUMS}")
    for name in DESCRIPTIONS:
        if name in files and name not in listed:
            yield Problem("surplus", name, "a file", f"nothing, for {CHECKSUMS} does not list it")
