"""The versions of libraries that decide the bytes of a stage, compared with the locked ones before it begins.

DVC sees files, not installed packages: without this check a new Pillow or torch would give other bytes unseen.
"""

from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.plumbing.files import is_there, read_text

COMPUTING = ("numpy", "pillow", "robustbench", "timm", "torch")
"""Libraries that compute scores; their versions are recorded next to the scores."""

DECISIVE = {
    "preprocess": ("pillow", "pyarrow"),
    "score": (*COMPUTING, "pyarrow"),
    "export": ("pillow",),
}
"""Libraries by stage: Pillow decodes and encodes images, pyarrow writes its version into Parquet, others compute."""

READING_LISTS = ("numpy", "pyarrow")
"""Libraries that stage score needs of a model that is a published list."""

_VERSION_FILE = {"preprocess": "dataset", "score": "scoring"}


def check_versions(edition: Edition, root: str, stage: str, libraries: Iterable[str] | None = None) -> None:
    """Raise CleansetError if a library that decides the bytes of `stage` is installed in another version than locked.

    `libraries`: only these, where a run of the stage needs fewer than all. `root` (of params.yaml) leads to the folder
    with requirements.txt. Without that file, as with an installed package, nothing is locked and nothing is compared.
    """
    lock = edition.path(root) / "requirements.txt"
    if not is_there(lock):
        return
    wanted = DECISIVE[stage] if libraries is None else tuple(libraries)
    locked = locked_versions(read_text(lock, "expected the output of make lock"), wanted)
    for name in wanted:
        found = installed_version(name)
        if name in locked and found != locked[name]:
            raise CleansetError(_difference(name, found, locked=locked[name], lock=lock, stage=stage))


def locked_versions(text: str, names: Iterable[str]) -> dict[str, str]:
    """The version of each of these libraries that a requirements file pins for this Python and platform."""
    # the slim installation lacks packaging, and fetches sets by what else is here
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    wanted = set(names)
    versions: dict[str, str] = {}
    for line in text.splitlines():
        name, pinned, _ = line.partition("==")
        if pinned and canonicalize_name(name) in wanted:
            # a line that is followed by hashes ends in a backslash
            requirement = Requirement(line.removesuffix("\\").partition(" --hash")[0].strip())
            if requirement.marker is None or requirement.marker.evaluate():
                versions[canonicalize_name(name)] = next(iter(requirement.specifier)).version
    return versions


def installed_version(name: str) -> str | None:
    """The installed version of a library without its local part, 2.11.0 for 2.11.0+cpu; None if it is missing."""
    try:
        return version(name).partition("+")[0]
    except PackageNotFoundError:
        return None


def _difference(name: str, found: str | None, *, locked: str, lock: Path, stage: str) -> str:
    folder = _VERSION_FILE.get(stage)
    anew = f"raise src/cleanset/{folder}/VERSION" if folder else f"run dvc repro --force {stage}"
    installed = "not installed" if found is None else f"{found} is installed"
    return (
        f"{name}: {installed}, {locked} is locked in {lock}; expected the locked version, which decides the bytes of "
        f"stage {stage}: install it (pip install {name}=={locked}), or lock again (make lock) and {anew}"
    )
