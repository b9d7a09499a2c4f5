"""The command `publish` of one finished set: a folder and a tar for a hub or an archive; uploads nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cleanset.errors import CleansetError
from cleanset.plumbing.files import is_there, new_folder, sha256
from cleanset.review.guidelines import GUIDELINES
from cleanset.sets import verify
from cleanset.sets.archive import sign, write_tar
from cleanset.sets.card import card_without_images
from cleanset.sets.catalogues import zenodo_json
from cleanset.sets.description import Release, name_of
from cleanset.sets.folder import (
    CARD,
    CHECKSUMS,
    REJECTED_CSV,
    SIGNATURE,
    check_outside,
    checksums,
    derived_texts,
    read_entries,
    read_image,
    read_regular_file,
    read_release,
    released_texts,
)
from cleanset.sets.manifest import MANIFEST, Entry, check_not_empty, form_of


@dataclass(frozen=True, slots=True)
class Publication:
    """A published set: its folder, the tar of it, the tar's SHA-256, and a warning about who may have its images."""

    folder: Path
    tar: Path
    tar_sha256: str
    images: int
    with_images: bool
    signed: bool
    word_on_terms: str


def run(export: Path, out: Path, with_images: bool, key: Path | None) -> Publication:
    """Write a release of the finished set in `export` into the new folder `out`: a folder, and a tar of it.

    Both hold the manifest, card, Croissant description, licence, rejected candidates, metadata for Zenodo and
    checksums, with `with_images` the images too, and with `key`, a private SSH key, the signature of the checksums. The
    same export gives the same bytes; so does the signature of an Ed25519 key. Raises CleansetError for a set that
    verify finds a problem in, that has no card or no rejected candidates, or that is not dated.
    """
    check_outside(out, export)
    entries, release = publishable(export)
    name = f"{name_of(entries[0].model)}-{release.version}"
    with new_folder(out) as partial:
        write_set(partial / name, export, entries, release, with_images=with_images)
        return finish(partial / name, out, len(entries), release, with_images=with_images, key=key)


def write_set(folder: Path, export: Path, entries: Sequence[Entry], release: Release, *, with_images: bool) -> None:
    """Write the published files of a finished set into the new folder `folder`."""
    folder.mkdir(parents=True)
    for file, data in _texts(export, entries, release, with_images).items():
        (folder / file).write_bytes(data)
    for entry in entries if with_images else ():
        (folder / entry.file).parent.mkdir(exist_ok=True)
        (folder / entry.file).write_bytes(read_image(export, entry))


def finish(
    folder: Path, out: Path, images: int, release: Release, *, with_images: bool, key: Path | None
) -> Publication:
    """Sign the checksums in a folder with a private SSH key, if given, and write its tar; both become `out`."""
    if key is not None:
        (folder / SIGNATURE).write_bytes(sign((folder / CHECKSUMS).read_bytes(), key))
    tar = folder.with_name(f"{folder.name}.tar")
    write_tar(folder, tar)
    digest = sha256(tar.read_bytes())
    word = release.texts["word_on_terms"] if with_images else ""
    return Publication(
        folder=out / folder.name,
        tar=out / tar.name,
        tar_sha256=digest,
        images=images,
        with_images=with_images,
        signed=key is not None,
        word_on_terms=word,
    )


def render(publication: Publication) -> str:
    """The output of the command."""
    images = "with its images" if publication.with_images else "without its images"
    signed = "signed" if publication.signed else "not signed (--key)"
    return (
        f"{publication.folder}: {publication.images:,} images, published {images}, {signed}\n"
        f"{publication.tar}: SHA-256 {publication.tar_sha256}"
    )


def publishable(export: Path) -> tuple[list[Entry], Release]:
    """The entries and the release of a finished set. Raises CleansetError for a set that cannot be published."""
    # without decoding: files with the SHA-256 of the manifest have its pixels
    problems = verify.run(export, decode=False).problems
    if problems:
        raise CleansetError(
            f"{export}: problems: {len(problems)}, the first: {problems[0]}; see cleanset verify {export}"
        )
    entries = read_entries(export)
    release = read_release(export)
    needed = {CARD: "data card", REJECTED_CSV: "table of rejected candidates"}
    for name, what in needed.items():
        if not is_there(export / name):
            raise CleansetError(
                f"{export}: no {what} ({name}); expected a set that stage export has written, not a rebuilt one, nor "
                "one of an older version: run dvc repro"
            )
    check_not_empty(entries, export)
    if not release.classes.is_imagenet and release.about is None:
        raise CleansetError(
            f"{export}: the owner and licence of the images are not stated; set export.about in the "
            "edition's params.yaml (cleanset docs own_images), and run dvc repro"
        )
    if not release.date:
        raise CleansetError(
            f"{export}: version {release.version} without a date; set export.version and export.date in the edition's "
            "params.yaml, and run dvc repro (a set of cleanset published has one, unless it has --reviews or a notice)"
        )
    return entries, release


def _texts(export: Path, entries: Sequence[Entry], release: Release, with_images: bool) -> dict[str, bytes]:
    """The files that describe the set, by name."""
    names = [name for name in (CARD, GUIDELINES, MANIFEST, REJECTED_CSV) if is_there(export / name)]
    texts = {name: read_regular_file(export / name) for name in names}
    made = derived_texts(texts[MANIFEST].decode(), entries, release, with_images=with_images)
    made |= released_texts(zenodo_json(entries, release, with_images=with_images), release, with_images=with_images)
    texts |= {name: text.encode() for name, text in made.items()}
    if not with_images:
        try:
            card = card_without_images(
                texts[CARD].decode(),
                entries[0].model,
                len(entries),
                release,
                manifest_sha256=sha256(texts[MANIFEST]),
                form=form_of(entries),
            )
        except ValueError:  # a section that is not there, or no UTF-8
            raise CleansetError(
                f"{export / CARD}: without the sections Loading and Motivation; expected the card of stage export: "
                "run dvc repro"
            ) from None
        texts[CARD] = card.encode()
    # last, because it lists the digests of all others
    texts[CHECKSUMS] = checksums({name: sha256(data) for name, data in texts.items()}).encode()
    return texts
