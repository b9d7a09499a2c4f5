"""Where DVC keeps a set, from the files of a repository: dvc.lock, .dvc/config and the list of a folder's files."""

import configparser
import json
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import yaml

from cleanset.errors import CleansetError, reason
from cleanset.fetching.git import Snapshot
from cleanset.files import md5

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
    outs = dict(_outs(text, f"{asked}, dvc.lock"))
    if asked.export not in outs:
        models = sorted(path.rpartition("/")[2] for path in outs if path.startswith("data/export/"))
        raise CleansetError(
            f"{asked}: no finished set of model {asked.model}; expected one of {', '.join(models) or 'none'}"
        )
    found = str(outs[asked.export].get("md5"))
    if not _DIRECTORY.fullmatch(found) or outs[asked.export].get("hash") != "md5":
        raise CleansetError(f"{asked}, dvc.lock: no MD5 of {asked.export}; expected what DVC 3 writes")
    return found


def remote_of(snapshot: Snapshot) -> Remote:
    """The default remote of the DVC project that the edition belongs to."""
    asked = snapshot.published
    for root in (PurePosixPath(asked.folder), *PurePosixPath(asked.folder).parents):
        text = snapshot.read(_inside(root.as_posix(), ".dvc/config"))
        if text is not None:
            return _default_remote(text, root.as_posix(), f"{asked}, {_inside(root.as_posix(), '.dvc/config')}")
    raise CleansetError(f"{asked}: no .dvc/config; expected a DVC project, which names the remote with the images")


def files_of(listing: bytes, directory: str, where: str) -> dict[str, str]:
    """MD5 of each file of a folder, by path inside it, from DVC's list; the list is checked against its own MD5."""
    found = md5([listing])
    if found != directory.removesuffix(".dir"):
        raise CleansetError(f"{where}: the list of the set's files is damaged (MD5 {found}, expected {directory[:32]})")
    files: dict[str, str] = {}
    for each in json.loads(listing):
        path = PurePosixPath(each["relpath"])
        if path.is_absolute() or ".." in path.parts or not _MD5.fullmatch(each["md5"]) or not path.parts:
            raise CleansetError(
                f"{where}: {each['relpath']!r} in the list of the set's files; expected a path in the set"
            )
        files[path.as_posix()] = each["md5"]
    return files


def _outs(text: str, where: str) -> list[tuple[str, dict[str, Any]]]:
    try:
        stages = yaml.safe_load(text)["stages"].values()
        return [(out["path"], out) for stage in stages for out in stage.get("outs", ())]
    except (yaml.YAMLError, TypeError, KeyError, AttributeError) as error:
        raise CleansetError(f"{where}: not readable ({reason(error)}); expected what DVC 3 writes") from None


def _default_remote(text: str, root: str, where: str) -> Remote:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise CleansetError(f"{where}: not readable ({reason(error)}); expected DVC's settings") from None
    sections = {name.strip("'\""): dict(parser[name]) for name in parser.sections()}
    name = sections.get("core", {}).get("remote", "").strip("'\"")
    options = {key: value.strip("'\"") for key, value in sections.get(f'remote "{name}', {}).items()}
    if not options.get("url"):
        raise CleansetError(f"{where}: no default remote; expected core.remote and its url, where the images are")
    return Remote(name, options, root)


def _inside(folder: str, name: str) -> str:
    return PurePosixPath(folder, name).as_posix()
