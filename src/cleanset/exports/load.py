"""Loading a finished set, from a folder or from a git repository."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.exports import remote
from cleanset.exports.folder import manifest_text
from cleanset.exports.manifest import MANIFEST, Entry
from cleanset.exports.manifest_check import read_manifest

if TYPE_CHECKING:
    import pandas as pd

    from cleanset.exports.torch_dataset import TorchImageSet


def load(
    model: str,
    edition: str | Path = ".",
    *,
    rev: str | None = None,
    folder: str = ".",
    transform: Callable[[Any], Any] | None = None,
) -> "TorchImageSet":
    """The finished set of a model as a torch Dataset of (image, class index, record).

    `edition` is the folder of an edition or of an export, or the address of a git repository that publishes one:
    there, `rev` is a commit, tag or branch, and `folder` the edition inside the repository, such as "imagenet". What
    is fetched is checked, kept in ~/.cache/cleanset (or CLEANSET_CACHE) and not fetched again. `transform` is
    called with the PIL image (RGB, pixels as stored). Raises CleansetError that says what to do.
    """
    from cleanset.exports.torch_dataset import TorchImageSet

    if remote.is_address(edition):
        at = remote.fetched(remote.Published(str(edition), rev, folder, model))
    else:
        at = _local(model, Path(edition), rev, folder)
    return TorchImageSet(at, _entries(*manifest_text(at), model), transform)


def table(model: str, edition: str | Path = ".", *, rev: str | None = None, folder: str = ".") -> "pd.DataFrame":
    """The manifest of a model's finished set as a pandas table; fetches no images. Arguments as for `load`."""
    import pandas as pd

    if remote.is_address(edition):
        text, where = remote.manifest(remote.Published(str(edition), rev, folder, model))
    else:
        text, where = manifest_text(_local(model, Path(edition), rev, folder))
    _entries(text, where, model)
    numbers = dict.fromkeys(("left", "top", "right", "bottom"), "Int64") | {"confidence": "float64"}
    empty = {name: [""] for name in numbers}
    return pd.read_csv(
        io.StringIO(text), dtype=numbers | {"real_classes": "str"}, keep_default_na=False, na_values=empty
    )


def _local(model: str, edition: Path, rev: str | None, folder: str) -> Path:
    """The folder of a model's export under that of an edition, or itself."""
    if rev is not None:
        raise CleansetError(f"{edition}: a folder; rev goes with the address of a git repository, such as file://...")
    edition = edition / folder
    if (edition / MANIFEST).is_file():
        return edition
    export = Edition(edition).export(model)
    if (export / MANIFEST).is_file():
        return export
    if (edition / "params.yaml").is_file():
        from cleanset.edition.params import read_params

        read_params(edition).model(model)
        raise CleansetError(f"{export}: not there; run dvc pull export@{model} in {edition.resolve()}, or dvc repro")
    what = "no edition and no export" if edition.is_dir() else "missing"
    raise CleansetError(
        f"{edition}: {what}; expected a folder with params.yaml or {MANIFEST}, or the address of a git repository"
    )


def _entries(text: str, where: str, model: str) -> list[Entry]:
    entries = read_manifest(text, where)
    other = next((entry.model for entry in entries if entry.model != model), None)
    if other is not None:
        raise CleansetError(f"{where}: the set of model {other}; expected that of {model}")
    return entries
