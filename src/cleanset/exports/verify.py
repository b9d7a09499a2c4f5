"""The command `verify`: the folder of a finished set against its manifest, and its signature."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath

from cleanset.exports.archive import unpack
from cleanset.exports.croissant import croissant_json
from cleanset.exports.description import release_of
from cleanset.exports.folder import (
    CARD,
    CHECKSUMS,
    CROISSANT,
    DESCRIPTIONS,
    METADATA,
    OPTIONAL,
    SIGNATURE,
    checksums,
    manifest_text,
    metadata_csv,
    read_checksums,
    read_regular_file,
)
from cleanset.exports.manifest import MANIFEST, Entry
from cleanset.exports.manifest_check import CheckedManifest, Problem, check_manifest, duplicates
from cleanset.exports.signature import SignatureError, signer
from cleanset.files import sha256
from cleanset.machine import available_cores

BATCH_FILES = 32
"""Files that a thread takes at a time."""

_IMAGE_ENDINGS = (".jpeg", ".jpg", ".png")


@dataclass(frozen=True, slots=True)
class Verification:
    """The problems of a set, and how many of the manifest's images have none.

    `card`: whether it has a data card. `with_images`: false where it was published without its images. `signed`:
    whether it has a signature; `signer`: whose, if it was checked and holds.
    """

    folder: str
    images: int
    good: int
    decoded: bool
    card: bool
    with_images: bool
    signed: bool
    signer: str | None
    problems: list[Problem]


@dataclass(frozen=True, slots=True)
class _Placed:
    """A line of the manifest, and its file: where it should be, or in another folder."""

    line: int
    entry: Entry
    file: str


def run(folder: Path, decode: bool, signers: Path | None = None) -> Verification:
    """Compare the folder of an export with its manifest, and what describes it with its checksums.

    Where the SHA-256 of a file is that of the manifest, its pixels are taken for those of the manifest too; they are
    decoded only where it differs, or with `decode`. With `signers`, a public key or allowed signers, the set must be
    signed by one of them. `folder` may be the tar of a published set, too: then the tar must have the bytes that
    publish gives for what is in it. Raises CleansetError if no manifest or no `signers` can be read.
    """
    if not folder.is_file() or folder.suffix != ".tar":
        return _verify(folder, decode, signers)
    with unpack(folder) as (inside, same_bytes):
        found = _verify(inside, decode, signers)
    if not same_bytes:
        found.problems.append(Problem("unlike", folder.name, "other bytes", "those that publish gives for its files"))
    return replace(found, folder=str(folder))


def _verify(folder: Path, decode: bool, signers: Path | None) -> Verification:
    manifest = check_manifest(*manifest_text(folder / MANIFEST))
    problems = [*manifest.problems, *duplicates(manifest.entries)]
    files, empty, others = _contents(folder)
    placed = _placed(manifest.entries, files)
    with_images = bool(placed) or not _is_without_images(folder, files)
    found = {each.line for each in placed}
    for line, entry in manifest.entries.items():
        if with_images and line not in found:
            problems.append(Problem("missing", entry.file, "nothing", entry.file_sha256, line))
    problems += _of_files(folder, placed, decode)
    known = {each.file for each in placed} | {*DESCRIPTIONS, CHECKSUMS, SIGNATURE} | set(manifest.invalid_files)
    problems += [Problem("surplus", file, "a file", "nothing") for file in sorted(files - known)]
    problems += [Problem("surplus", name, "an empty folder", "nothing") for name in sorted(empty)]
    problems += [Problem("surplus", name, "not a regular file", "nothing") for name in sorted(others)]
    if not manifest.problems:
        # what is made from a faulty manifest differs for that reason alone
        problems += _of_derived(folder, files, manifest, with_images)
    problems += _of_checksums(folder, files, with_images)
    whose = _signer(folder, files, signers) if signers else None
    if isinstance(whose, Problem):
        problems.append(whose)
    bad = {problem.line for problem in problems}
    good = sum(line not in bad for line in manifest.entries) if with_images else 0
    return Verification(
        folder=str(folder),
        images=manifest.lines,
        good=good,
        decoded=decode,
        card=CARD in files,
        with_images=with_images,
        signed=SIGNATURE in files,
        signer=whose if isinstance(whose, str) else None,
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
        summary += f"; signed: {verification.signer}"
    elif verification.signed:
        summary += (
            "; signature not valid" if _has_bad_signature(verification) else "; signature not checked (--signature)"
        )
    return "\n".join([*map(str, verification.problems), summary])


def _contents(folder: Path, prefix: str = "") -> tuple[set[str], set[str], set[str]]:
    """Paths of the files, of the empty folders, and of pipes, devices and links that lead to no file.

    Relative to `folder`. Hidden files such as .DS_Store are left out, unless a program might take them for images.
    """
    files, empty, others = set(), set(), set()
    with os.scandir(folder) as there:
        for entry in there:
            name = prefix + entry.name
            # a link to a folder might lead back here, and is not part of a set
            if entry.is_dir(follow_symlinks=False):
                inside = _contents(Path(entry.path), f"{name}/")
                files |= inside[0]
                empty |= inside[1] if any(inside) else {f"{name}/"}
                others |= inside[2]
            elif not entry.name.startswith(".") or entry.name.lower().endswith(_IMAGE_ENDINGS):
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
            placed.append(_Placed(line, entry, entry.file))
        # a file in another folder is misplaced, which is one problem, not one missing and one surplus
        elif same_name := elsewhere.get(PurePosixPath(entry.file).name):
            placed.append(_Placed(line, entry, same_name.pop(0)))
    return placed


def _of_files(folder: Path, placed: Sequence[_Placed], decode: bool) -> list[Problem]:
    """Read every file, on all cores: reading, hashing and decoding release the lock."""
    batches = [placed[start : start + BATCH_FILES] for start in range(0, len(placed), BATCH_FILES)]
    with ThreadPoolExecutor(available_cores()) as pool:
        found = pool.map(lambda batch: [each for one in batch for each in _of_file(folder, one, decode)], batches)
        return [problem for problems in found for problem in problems]


def _of_file(folder: Path, placed: _Placed, decode: bool) -> Iterator[Problem]:
    entry, line = placed.entry, placed.line
    if placed.file != entry.file:
        yield Problem("misplaced", placed.file, "here", entry.file, line)
    data = read_regular_file(f"{folder}/{placed.file}")
    found = sha256(data)
    same_bytes = found == entry.file_sha256
    if same_bytes and not decode:
        return
    pixels = _pixels(data)
    if isinstance(pixels, ValueError):
        yield Problem("undecodable", placed.file, str(pixels), entry.file_sha256, line)
    elif not same_bytes:
        same_pixels = pixels == entry.pixels_sha256
        yield Problem("reencoded" if same_pixels else "changed", placed.file, found, entry.file_sha256, line)
    elif pixels != entry.pixels_sha256:
        yield Problem("pixels", placed.file, pixels, entry.pixels_sha256, line)


def _pixels(data: bytes) -> str | ValueError:
    """SHA-256 of the pixels, or the error of decoding them."""
    # imported here, because most sets are verified by their bytes, without decoding an image
    from cleanset.images import codec

    try:
        return codec.pixels_sha256(codec.decode(data, ("JPEG", "PNG")))
    except ValueError as error:
        return error


def _of_derived(folder: Path, files: set[str], manifest: CheckedManifest, with_images: bool) -> Iterator[Problem]:
    """Problems of the files that are made from the manifest: missing, or made from another one."""
    entries = list(manifest.entries.values())
    release = release_of(read_regular_file(folder / CROISSANT) if CROISSANT in files else b"")
    texts = {CROISSANT: croissant_json(entries, sha256(manifest.text.encode()), release)}
    if with_images:
        texts[METADATA] = metadata_csv(manifest.text)
    for name, text in texts.items():
        if name not in files:
            yield Problem("missing", name, "nothing", f"what is made from {MANIFEST}")
        elif read_regular_file(folder / name) != text.encode():
            yield Problem("unlike", name, "something else", f"what is made from {MANIFEST}")


def _is_without_images(folder: Path, files: set[str]) -> bool:
    """Whether a set was published without its images, and so without METADATA, which needs them."""
    # a METADATA that is listed but lost is a fault, not a set without images
    return CHECKSUMS in files and METADATA not in {*files, *read_checksums(folder)[1]}


def _of_checksums(folder: Path, files: set[str], with_images: bool) -> Iterator[Problem]:
    """Problems of the files that describe the set, compared with CHECKSUMS."""
    if CHECKSUMS not in files:
        yield Problem("missing", CHECKSUMS, "nothing", "the digests of the files that describe the set")
        return
    text, listed = read_checksums(folder)
    needed = [name for name in DESCRIPTIONS if name not in OPTIONAL and (with_images or name != METADATA)]
    if checksums(listed) != text or not set(needed) <= set(listed) <= set(DESCRIPTIONS):
        yield Problem("unlike", CHECKSUMS, "something else", f"a SHA-256 and a name for each of {', '.join(needed)}")
        return
    for name, digest in listed.items():
        if name not in files:
            yield Problem("missing", name, "nothing", digest)
        elif (found := sha256(read_regular_file(folder / name))) != digest:
            yield Problem("changed", name, found, digest)
    for name in DESCRIPTIONS:
        if name in files and name not in listed:
            yield Problem("surplus", name, "a file", f"nothing, for {CHECKSUMS} does not list it")


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


def _has_bad_signature(verification: Verification) -> bool:
    return any(problem.what == "signature" for problem in verification.problems)
