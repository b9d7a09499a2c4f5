"""The code that the stages of an edition name, below `root` of its params.yaml.

Within a checkout `root` leads to the checkout. Any other edition has a folder of links to the code, which git ignores:
dvc.lock is the same wherever cleanset is installed. A clone lacks the links, and DVC then says "No such file or
directory" with a path in that folder, whose name is the remedy.
"""

import os
from pathlib import Path

from cleanset.plumbing.files import check_no_links
from cleanset.plumbing.yaml_files import read_yaml

SRC = Path(__file__).resolve().parents[2]
"""The folder that the package is in: `src` of a checkout, or where it is installed."""
CHECKOUT = SRC.parent
TEMPLATE = Path(__file__).parent / "template"
"""The ImageNet edition's files: a link to `imagenet` in a checkout, copies in an installed package."""
IS_INSTALLED = SRC.name != "src" or not TEMPLATE.is_symlink()
LINKED = "linked_by_cleanset_doctor"
"""The folder of an edition with the links to the code."""


def root_of(folder: Path) -> str:
    """`root` in the params.yaml of a new edition: the path from its folder to the one that holds `src`."""
    if IS_INSTALLED or not folder.resolve().is_relative_to(CHECKOUT):
        return LINKED
    return Path(os.path.relpath(CHECKOUT, folder.resolve())).as_posix()


def link_code(edition: Path) -> None:
    """Link the package, and the lock of a checkout's libraries, in the folder of an edition.

    Raises CleansetError for a link in place of the folder for them.
    """
    places = {"src": SRC}
    if not IS_INSTALLED:
        places["requirements.txt"] = CHECKOUT / "requirements.txt"
    folder = edition / LINKED
    check_no_links(edition, folder)
    folder.mkdir(exist_ok=True)
    for name, place in places.items():
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(place)


def relink_code(folder: Path) -> list[str]:
    """Make the links again where they are missing or lead nowhere, as after a git clone.

    `folder`: an edition, or a study in it. Returns a line that reports it.
    """
    for edition in (folder, folder / ".." / ".."):
        link = edition / LINKED / "src"
        if not link.exists() and _names_links(edition / "params.yaml"):
            link_code(edition)
            return [f"{link}: linked to the code of cleanset in {SRC}"]
    return []


def _names_links(params: Path) -> bool:
    """Whether an edition's params.yaml, not a study's, has LINKED as its root."""
    content = read_yaml(params, "expected YAML in UTF-8") if params.is_file() else None
    return isinstance(content, dict) and content.get("root") == LINKED
