"""`cleanset.load` and `cleanset.table`: a finished set from a folder, a release or a git repository."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError, DamagedError, InputError
from cleanset.plumbing.files import check_unpacked, is_there
from cleanset.plumbing.machine import check_file_names
from cleanset.plumbing.validation import ROLE_FORM
from cleanset.sets.catalogues import records_of
from cleanset.sets.description import notices_of
from cleanset.sets.fetching.repository import is_address, is_release, published_set
from cleanset.sets.folder import ManifestText, check_listed, manifest_text, one_set, read_release
from cleanset.sets.image_set import ImageSet
from cleanset.sets.manifest import MANIFEST, Entry, column_of, form_of
from cleanset.sets.manifest_checks import check_set, read_manifest
from cleanset.sets.published.lists import PUBLISHED_MODEL, PUBLISHED_SET, PublishedChoice

if TYPE_CHECKING:
    import pandas as pd


def load(
    model: str | Path = "",
    edition: str | Path = ".",
    *,
    rev: str | None = None,
    folder: str = ".",
    transform: Callable[[Any], Any] | None = None,
    update: bool = False,
    force: bool = False,
    images: str | Path | None = None,
    role: str = PUBLISHED_MODEL,
    unreviewed: str = "pending",
    reviews: Sequence[str | Path] = (),
    digests: str | Path | None = None,
) -> ImageSet:
    """The finished set of a model as a sequence of (image, class index, record): a torch Dataset if torch is installed.

    `edition` is the folder of an edition or of an export, a release of `cleanset publish` (its folder, its tar, the
    HTTPS address of the tar, or a DOI or record of Zenodo), or the address of a git repository that publishes an
    edition: there, `rev` is a commit, tag or branch, and `folder` the edition inside the repository, such as
    "imagenet". If a place has one set, it is enough by itself: `cleanset.load("release.tar")`, or
    `cleanset.load("./scooter")`. Fetched files and unpacked tars are checked and kept in ~/.cache/cleanset (or
    CLEANSET_CACHE); only missing and damaged files are fetched again, and a revision that was asked for before needs no
    network. `update` asks again which commit `rev` is; `force` computes the MD5 of all files again; for a release,
    either begins again. `transform` is called with the PIL image (RGB, pixels as stored). Raises CleansetError with the
    remedy.

    `cleanset.load("scooter", images=...)` gives the published set of the model `role`, made from your own copy of
    ImageNet's validation images: the tar, or a folder of any layout. It is made once, as `cleanset published` makes it,
    whose options `unreviewed`, `reviews` and `digests` are, and kept in the same cache; `force` makes it again.

        >>> images = cleanset.load("standard")
        >>> len(images), len(set(images.targets))
        (34, 12)
        >>> image, class_index, record = images[0]
        >>> image.size, images.class_names[class_index], record["tier"]
        ((407, 254), 'goldfish', 'top5')

    """
    if images is not None:
        at = _published(
            str(model),
            Path(images),
            PublishedChoice(role, unreviewed, tuple(map(Path, reviews))),
            digests=digests,
            force=force,
        )
        return _loaded(at, role, transform)
    role_of_set, edition = _role_and_place(model, edition)
    if is_address(edition):
        # imported here, because only an address needs it
        from cleanset.sets.fetching.fetch import fetch

        at = fetch(published_set(str(edition), rev, folder, role_of_set), update, force).folder
    else:
        at = _local(role_of_set, edition, rev=rev, folder=folder, afresh=update or force)
    return _loaded(at, role_of_set, transform)


def _role_and_place(model: str | Path, edition: str | Path) -> tuple[str, str | Path]:
    """The role of a model, empty if none was given, and the place of the set, which may be alone."""
    # a set in the current folder may be named like a role
    is_set = (Path(model) / MANIFEST).is_file() and not Path("params.yaml").is_file()
    is_place = edition == "." and model and (isinstance(model, Path) or not ROLE_FORM.fullmatch(model) or is_set)
    return ("", model) if is_place else (str(model), edition)


def _loaded(folder: Path, model: str, transform: Callable[[Any], Any] | None) -> ImageSet:
    manifest = _checked_manifest(folder)
    entries = _entries(manifest, model)
    check_file_names(entry.file for entry in entries)
    notices = notices_of(entries, read_release(folder))
    return _image_set()(folder, entries, manifest.classes, transform, notices)


def _checked_manifest(folder: Path) -> ManifestText:
    """A set's manifest, which is the one that the set's checksums list."""
    found = manifest_text(folder)
    check_listed(folder, is_set=True)
    return found


def _published(name: str, images: Path, choice: PublishedChoice, digests: str | Path | None, force: bool) -> Path:
    if name != PUBLISHED_SET:
        raise InputError(
            f"cleanset.load: images= goes with {PUBLISHED_SET!r}, the set that is made from your own images, not with "
            f"{name!r}"
        )
    # imported here: everything else needs neither lists nor reviews
    from cleanset.sets.published.image_set import kept_set

    return kept_set(choice, images, Path(digests) if digests else None, force)


def table(
    model: str | Path = "",
    edition: str | Path = ".",
    *,
    rev: str | None = None,
    folder: str = ".",
    update: bool = False,
) -> "pd.DataFrame":
    """The manifest of a model's finished set as a pandas table. Arguments as for `load`.

    Fetches no images from a repository; a release is one file.

    Its `attrs["notices"]` describe the limits of the set in sentences, like the `notices` of `load`.

        >>> table = cleanset.table("standard")
        >>> table["tier"].value_counts().to_dict()
        {'top5': 26, 'reserve': 5, 'relaxed': 3}

    """
    import pandas as pd

    role, edition = _role_and_place(model, edition)
    if is_address(edition):
        from cleanset.sets.fetching.fetch import descriptions

        manifest, release = descriptions(published_set(str(edition), rev, folder, role), update)
    else:
        at = _local(role, edition, rev=rev, folder=folder, afresh=update)
        manifest = _checked_manifest(at)
        release = read_release(at)
    entries = _entries(manifest, role)
    # pandas' own Int64, because int64 has no missing values and a whole image has no box
    kinds = {
        manifest.classes.column(name): "Int64" if column_of(name).kind == "whole number" else "float64"
        for name in form_of(entries).fields(manifest.classes)
        if column_of(name).is_optional
    }
    found = pd.DataFrame(records_of(manifest.text, manifest.classes)).astype(kinds)
    found.attrs["notices"] = notices_of(entries, release)
    return found


def _image_set() -> type[ImageSet]:
    """The class of what is loaded: a torch Dataset if torch is installed."""
    try:
        from cleanset.sets.torch_dataset import TorchImageSet
    except ModuleNotFoundError as error:
        # torch is optional; any other missing module is a fault of the installation, and has to show
        if (error.name or "").partition(".")[0] != "torch":
            raise
        return ImageSet
    return TorchImageSet


def _local(model: str, place: str | Path, rev: str | None, folder: str, afresh: bool) -> Path:
    """The folder of a model's set: itself, or in that of an edition or a release, or the only one there."""
    edition = Path(place)
    if rev is not None or (afresh and not is_release(place)):
        name = "update and force go" if rev is None else "rev goes"
        raise InputError(f"{edition}: a folder; {name} with the address of a git repository, such as file://...")
    if model == PUBLISHED_SET:
        raise InputError(
            f"the set {PUBLISHED_SET!r} is made from your own copy of ImageNet: pass its path, as in "
            f'cleanset.load("{PUBLISHED_SET}", images="ILSVRC2012_img_val.tar")'
        )
    if is_release(place):
        from cleanset.sets.fetching.releases import opened

        return one_set(opened(place, afresh), model)
    check_unpacked(edition, "a set's folder, or the tar of cleanset publish")
    edition = edition / folder
    if is_there(edition / MANIFEST):
        return edition
    export = Edition(edition).export(model)
    if is_there(export / MANIFEST):
        return export
    if model and (edition / "params.yaml").is_file():
        from cleanset.edition.params import read_params

        # raises for a role that the edition does not have
        read_params(edition).model(model)
        raise missing_export(export, model, edition.resolve())
    if (found := one_set(edition, model)) != edition:
        return found
    expected = f"expected a folder with params.yaml or {MANIFEST}, or the address of a git repository"
    if model and edition == Path():
        raise InputError(
            f"{model!r}: no such set in this folder, which is not an edition; {expected}, or {PUBLISHED_SET!r}"
        )
    what = "neither an edition nor an export" if edition.is_dir() else "missing"
    raise InputError(f"{edition}: {what}; {expected}")


def missing_export(export: Path, role: str, edition: Path) -> CleansetError:
    """The error for a model's set that is not in its edition."""
    return InputError(f"{export}: not there; run dvc pull export@{role} in {edition}, or dvc repro")


def _entries(manifest: ManifestText, model: str) -> list[Entry]:
    where = manifest.where
    entries = read_manifest(manifest.text, where, manifest.classes)
    if not entries:
        raise InputError(f"{where}: no images; expected at least one: review some, then export or fetch it again")
    if problems := check_set(dict(enumerate(entries, start=2)), manifest.classes):
        raise DamagedError(f"{where}: {problems[0]}; export or fetch the set again")
    other = next((entry.model for entry in entries if entry.model != (model or entries[0].model)), None)
    if other is not None:
        raise InputError(f"{where}: the set of model {other}; expected model {model}")
    return entries
