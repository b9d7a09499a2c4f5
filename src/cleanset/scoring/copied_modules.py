"""Custom models of an edition: their modules are copied into its folder, and their code is pinned in params.yaml."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from cleanset.edition.code_link import LINKED
from cleanset.edition.models import Models
from cleanset.edition.params import Model
from cleanset.errors import CleansetError
from cleanset.plumbing.files import sha256_of
from cleanset.plumbing.validation import join_names
from cleanset.scoring.fingerprints import is_importable, sources_of, sources_sha256

_OF_EDITION = ("build", "data", "dvc_plots", "metrics", "report", "reviews", "studies", LINKED)
"""Folders of an edition that git ignores, or that stages and commands write into."""


def with_modules(models: Models, *places: Path) -> tuple[dict[str, Model], dict[str, Path]]:
    """The same models, those of modules in a folder of `places` with the SHA-256 of their code; and the files of these.

    The files are those of each module, in the first folder that has it, and of all that it imports there, by their
    paths below the folder. A module of elsewhere is taken by its name alone. Raises CleansetError for a module that is
    neither there nor importable.
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
        files |= {name: here / name for name in names}
        found[role] = model.model_copy(update={"module_sha256": sources_sha256(model.module, here)})
    return found, files


def check_fit(files: Mapping[str, Path], edition: Path) -> None:
    """Raise CleansetError for a file that the edition has with other bytes."""
    for name, path in files.items():
        there = edition / name
        if there.exists() and not (there.is_file() and sha256_of(there) == sha256_of(path)):
            raise CleansetError(f"{there}: differs from {path}; expected the same module, or none: remove one of them")


def said_of_modules(models: Models, files: Mapping[str, Path]) -> Iterator[str]:
    """Lines on what was copied, and on what was not."""
    if files:
        yield f"Copied and pinned: {join_names(files)}; not what they open by name, such as weights"
    for role, model in models.items():
        if model.module is not None and model.module_sha256 is None:
            yield f"{role}: module {model.module} stays where it is installed, and is not pinned"
