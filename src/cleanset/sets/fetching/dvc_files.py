"""The location of a set in DVC, from a repository's dvc.lock and .dvc/config and the list of a folder's files."""

import configparser
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import yaml

from cleanset.edition.pipeline import stages_in
from cleanset.errors import CleansetError, reason
from cleanset.files import md5
from cleanset.parsing import parse_json
from cleanset.sets.fetching.git import Snapshot
from cleanset.validation import shown

MAX_LIST_BYTES = 1 << 24
"""Three times the list of a set with all 50,000 validation images."""
MAX_NAME_BYTES = 255
"""The longest name that file systems take."""

_DIRECTORY = re.compile(r"[0-9a-f]{32}\.dir")
_MD5 = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Remote:
    """The DVC remote that a repository names.

    `root` is the folder of the repository with `.dvc`, "." or a path, to which a relative url refers.
    """

    name: str
    options: dict[str, str]
    root: str

    @property
    def url(self) -> str:
        return self.options["url"]


def directory_md5(snapshot: Snapshot) -> str:
    """MD5 of the list of the set's files, with its ending `.dir`, from the edition's dvc.lock."""
    asked = snapshot.published
    text = snapshot.read(_inside(asked.folder, "dvc.lock"))
    if text is None:
        folders = snapshot.folders_with("dvc.lock", "params.yaml", "raw.md5")
        found = f"editions are in: {', '.join(folders)}" if folders else "it has no edition"
        raise CleansetError(f"{asked}: no dvc.lock; expected the folder of an edition (--folder); {found}")
    outs = _outs(text, f"{asked}, dvc.lock")
    if asked.export not in outs:
        models = sorted(path.rpartition("/")[2] for path in outs if path.startswith("data/export/"))
        raise CleansetError(
            f"{asked}: no finished set of model {asked.model}; expected one of {', '.join(models) or 'none'}"
        )
    found = str(outs[asked.export].get("md5"))
    # DVC 2 wrote no key hash; its MD5 of a text file was that of converted line ends
    if not _DIRECTORY.fullmatch(found) or outs[asked.export].get("hash") != "md5":
        raise CleansetError(f"{asked}, dvc.lock: no MD5 of {asked.export}; expected what DVC 3 writes")
    return found


def remote_of(snapshot: Snapshot) -> Remote:
    """The default remote of the DVC project that the edition belongs to."""
    asked = snapshot.published
    # an edition may be a DVC project inside another one (dvc init --subdir): the nearest counts
    for root in (PurePosixPath(asked.folder), *PurePosixPath(asked.folder).parents):
        text = snapshot.read(_inside(root.as_posix(), ".dvc/config"))
        if text is not None:
            return _default_remote(text, root.as_posix(), f"{asked}, {_inside(root.as_posix(), '.dvc/config')}")
    raise CleansetError(f"{asked}: no .dvc/config; expected a DVC project, which names the remote with the images")


def files_of(listing: bytes, directory: str, where: str) -> dict[str, str]:
    """MD5 of each file of a folder, by path inside it, from DVC's list; the list is checked against its own MD5.

    Raises CleansetError, naming `where`, for a list that is damaged, or that does not list the files of one set.
    """
    what = f"{where}: the list of the set's files"
    found = md5([listing])
    if found != directory.removesuffix(".dir"):
        raise CleansetError(f"{what} is damaged (MD5 {found}, expected {directory[:32]})")
    if len(listing) > MAX_LIST_BYTES:
        raise CleansetError(f"{what} has {len(listing):,} bytes; expected at most {MAX_LIST_BYTES:,}")
    try:
        text = listing.decode()
    except UnicodeDecodeError as error:
        raise CleansetError(f"{what} is not UTF-8 at byte {error.start}; expected what DVC 3 writes") from None
    entries = parse_json(text, what, "what DVC 3 writes")
    if not isinstance(entries, list) or not entries:
        raise CleansetError(f"{what} is {shown(entries)}; expected an entry for each file, as DVC 3 writes them")
    files: dict[str, str] = {}
    for each in entries:
        path, digest = _path_and_md5(each, what)
        if path in files:
            raise CleansetError(f"{what} has {shown(path)} twice; expected each file once")
        files[path] = digest
    folders = {path.partition("/")[0] for path in files if "/" in path}
    if both := sorted(folders & set(files)):
        raise CleansetError(f"{what} has {shown(both[0])} as a file and as a folder; expected one of the two")
    return files


def _path_and_md5(entry: object, what: str) -> tuple[str, str]:
    """The values of an entry. Raises CleansetError unless the path is one that a set may have, in its only spelling."""
    path, digest = (entry.get("relpath"), entry.get("md5")) if isinstance(entry, dict) else (None, None)
    if not isinstance(path, str) or not isinstance(digest, str) or not _MD5.fullmatch(digest):
        raise CleansetError(f"{what} has the entry {shown(entry)}; expected an MD5 and a path")
    # a set has folders of images, and no folder in these
    names = path.split("/")
    if (
        not path.isprintable()
        or len(names) > 2
        or not all(name not in ("", ".", "..") and len(name.encode()) <= MAX_NAME_BYTES for name in names)
    ):
        raise CleansetError(f"{what} has the path {shown(path)}; expected a path in the set")
    return path, digest


def _outs(text: str, where: str) -> dict[str, dict[str, Any]]:
    """The outs of all stages in a dvc.lock, by path."""
    try:
        outs: dict[str, dict[str, Any]] = {}
        for out in (out for stage in stages_in(text, with_aliases=False).values() for out in stage.get("outs", ())):
            if not isinstance(out, dict) or not isinstance(out["path"], str):
                raise TypeError(f"the out {shown(out)}")
            if out["path"] in outs:
                raise ValueError(f"the out {shown(out['path'])} a second time")
            outs[out["path"]] = out
        return outs
    except (yaml.YAMLError, ValueError, TypeError, KeyError) as error:
        raise CleansetError(f"{where}: not readable ({reason(error)}); expected what DVC 3 writes") from None


def _default_remote(text: str, root: str, where: str) -> Remote:
    # interpolation would take the % of an escaped address for a placeholder
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise CleansetError(f"{where}: not readable ({reason(error)}); expected DVC's settings") from None
    # DVC puts the name of a section in quotes, as in ['remote "storage"']
    sections = {name.strip("'\""): dict(parser[name]) for name in parser.sections()}
    name = sections.get("core", {}).get("remote", "").strip("'\"")
    options = {key: value.strip("'\"") for key, value in sections.get(f'remote "{name}', {}).items()}
    if not options.get("url"):
        raise CleansetError(f"{where}: no default remote; expected core.remote and its url, where the images are")
    if not options["url"].isprintable():
        raise CleansetError(f"{where}: url {shown(options['url'])}; expected an address or a folder")
    return Remote(name, options, root)


def _inside(folder: str, name: str) -> str:
    return PurePosixPath(folder, name).as_posix()
