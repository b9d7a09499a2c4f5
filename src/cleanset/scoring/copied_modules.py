"""Custom models of an edition: their modules are copied into its folder, and their code is pinned in params.yaml."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cleanset.edition.code_link import LINKED
from cleanset.edition.models import Models
from cleanset.edition.params import Model
from cleanset.errors import CleansetError
from cleanset.plumbing.files import sha256_of
from cleanset.plumbing.progress import print_notice
from cleanset.plumbing.validation import join_names
from cleanset.scoring.fingerprints import is_importable, sources_of, sources_sha256
from cleanset.scoring.opened_files import opened_on_loading

_OF_EDITION = ("build", "data", "dvc_plots", "metrics", "report", "reviews", "studies", LINKED)
"""Folders of an edition that git ignores, or that stages and commands write into."""


def with_modules(models: Models, *places: Path) -> tuple[dict[str, Model], dict[str, Path]]:
    """The same models, those of modules in a folder of `places` with the SHA-256 of their code; and the files of these.

    The files are those of each module, in the first folder that has it, of all that it imports there, and of what it
    opens there while it is loaded, such as weights, by their paths below the folder. A module of elsewhere is taken by
    its name alone. Raises CleansetError for a module that is neither there nor importable.
    """
    found = dict(models)
    files: dict[str, Path] = {}
    for role, model in models.items():
        if model.module is None:
            continue
        here = next((place for place in places if sources_of(model.module, place)), None)
        if here is None and not is_importable(model.module):
            raise CleansetError(
                f"{role}=module:{model.name}: no module {model.module} in {places[0].resolve()} or installed; "
                f"expected {model.module.replace('.', '/')}.py in this folder"
            )
        if here is None:
            continue
        names = list(sources_of(model.module, here))
        for name in names:
            if name.partition("/")[0] in _OF_EDITION:
                raise CleansetError(f"{name}: in a folder that an edition keeps for its own files; expected another")
        pinned = model.model_copy(update=pins_of(model, here))
        files |= {name: here / name for name in (*names, *(pinned.files or ()))}
        found[role] = pinned
    return found, files


def pins_of(model: Model, folder: Path) -> dict[str, Any]:
    """The digests of the code of a custom model in a folder, and of other files in it that it opens.

    Empty for a model of elsewhere. The files are found by loading the model; for one that cannot be loaded, which is
    reported, they are the known ones.
    """
    sources = sources_of(str(model.module), folder)
    if not sources:
        return {}
    opened = opened_on_loading(model.name, folder)
    if opened is None:
        print_notice(
            f"{model.name}: cannot be loaded in {folder.resolve()}, so the files that it opens, such as weights, are "
            "not known: run cleanset models --pin on a machine that can load it"
        )
        opened = [name for name in model.files or () if (folder / name).is_file()]
    # params.yaml has the digests, and DVC would see no end of changes
    names = [name for name in opened if name not in sources and name != "params.yaml"]
    digests = {name: sha256_of(folder / name) for name in names}
    return {"module_sha256": sources_sha256(str(model.module), folder), "files": digests or None}


def check_fit(files: Mapping[str, Path], edition: Path) -> None:
    """Raise CleansetError for a file that the edition has with other bytes."""
    for name, path in files.items():
        there = edition / name
        if there.exists() and not (there.is_file() and sha256_of(there) == sha256_of(path)):
            raise CleansetError(f"{there}: differs from {path}; expected the same file, or none: remove one of them")


def said_of_modules(models: Models, files: Mapping[str, Path]) -> Iterator[str]:
    """Lines on what was copied, and on what was not."""
    if files:
        yield f"Copied and pinned: {join_names(files)}"
    for role, model in models.items():
        if model.module is not None and model.module_sha256 is None:
            yield f"{role}: module {model.module} stays where it is installed, and is not pinned"
