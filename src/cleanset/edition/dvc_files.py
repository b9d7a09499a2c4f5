"""dvc.yaml and dvc.lock as DVC wrote them, the places of its files, and a project as DVC reads it.

It is read without the settings of its .dvc/config, which may be a stranger's.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import yaml

from cleanset.errors import CleansetError, reason
from cleanset.plumbing.files import check_no_links, md5, md5_of
from cleanset.plumbing.validation import shown

if TYPE_CHECKING:
    from dvc.output import Output
    from dvc.stage import Stage as LoadedStage


class LockedFile(TypedDict, total=False):
    """A file or folder in a dvc.lock."""

    path: str
    """Relative to the folder of the dvc.lock."""

    hash: str
    """The kind of digest, md5."""

    md5: str
    """The digest; for a folder that of DVC's list of its files, ending in .dir."""

    size: int
    """In bytes."""

    nfiles: int
    """Number of files in a folder."""


class LockedStage(TypedDict, total=False):
    """A stage in a dvc.lock."""

    cmd: str
    deps: list[LockedFile]
    params: dict[str, dict[str, object]]
    """The values of params by key, by the path of their file."""

    outs: list[LockedFile]


Stage = dict[str, Any]
"""A stage of a dvc.yaml: cmd, deps, params, outs and others, in DVC's many forms."""

MAX_FILE_DEPTH = 50
"""Nesting in files of DVC, which have under ten levels; PyYAML crashes the process at some 100,000."""


class _Loader(yaml.CSafeLoader):
    """Refuses a key twice, which each reader settles in its own way."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Check the keys of a mapping before others are merged into it."""
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for place, key in enumerate(keys):
            if key in keys[:place]:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {shown(key)} a second time", node.start_mark
                )
        super().flatten_mapping(node)


def load_yaml(text: str, *, with_aliases: bool = True) -> Any:
    """The content of a dvc.yaml or dvc.lock, which may have more than files that people write (see `parse_yaml`).

    Raises YAMLError, and ValueError for deep nesting. Aliases, which can grow without bounds, are refused unless
    `with_aliases`.
    """
    # the events first: it is building nested values that crashes
    depth = 0
    loader = yaml.CSafeLoader(text)
    while loader.check_event():
        event = loader.get_event()
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_FILE_DEPTH:
            raise ValueError(f"lists or tables more than {MAX_FILE_DEPTH} deep")
        if isinstance(event, yaml.AliasEvent) and not with_aliases:
            raise ValueError("an alias")
    return yaml.load(text, Loader=_Loader)


def stages_in(text: str, *, with_aliases: bool = True) -> dict[str, Stage]:
    """The stages of a dvc.yaml or dvc.lock by name.

    Raises YAMLError or ValueError as `load_yaml` does, and ValueError without a table of stages.
    """
    content = load_yaml(text, with_aliases=with_aliases)
    stages = content.get("stages") if isinstance(content, dict) else None
    if not (isinstance(stages, dict) and all(isinstance(stage, dict) for stage in stages.values())):
        raise ValueError("no table of stages")
    return stages


def checked_pipeline(content: object, where: object) -> dict[str, dict[str, Stage]]:
    """The content of a dvc.yaml. Raises CleansetError, naming `where`, if it has no table of stages."""
    stages = content.get("stages") if isinstance(content, dict) else None
    if not (isinstance(content, dict) and isinstance(stages, dict)):
        raise CleansetError(f"{where}: no stages; expected the pipeline of an edition")
    return content


def object_path(digest: str) -> str:
    """The path of a file in DVC's cache and on its remotes, by its MD5."""
    return f"files/md5/{digest[:2]}/{digest[2:]}"


MD5_FORM = re.compile(r"[0-9a-f]{32}(\.dir)?")
"""An MD5 as DVC writes it, of a file or of the list of a folder."""


def is_whole(text: str) -> bool:
    """Whether a dvc.lock is complete: it ends with a line, and every file in it has its path, MD5 and size."""
    try:
        stages = stages_in(text).values()
        entries = [entry for stage in stages for entry in (*stage.get("deps", []), *stage["outs"])]
        return text.endswith("\n") and all(map(_is_complete, entries))
    except (yaml.YAMLError, KeyError, TypeError, ValueError):
        return False


def _is_complete(entry: LockedFile) -> bool:
    is_folder = str(entry["md5"]).endswith(".dir")
    needed = {"path", "hash", "size"} | ({"nfiles"} if is_folder else set())
    return MD5_FORM.fullmatch(str(entry["md5"])) is not None and needed <= set(entry)


def lock_files(edition: Path) -> list[Path]:
    """Every dvc.lock of the edition's DVC project, or of a folder in it, without nested projects."""
    found = [edition / "dvc.lock"] if (edition / "dvc.lock").is_file() else []
    for child in edition.iterdir():
        is_plain = child.is_dir() and not child.is_symlink() and not child.name.startswith(".") and child.name != "data"
        if is_plain and not (child / ".dvc").is_dir():
            found += lock_files(child)
    return sorted(found)


def md5_of_list(paths: Mapping[Path, str]) -> str:
    """The MD5 that DVC gives a folder: that of its list, in this JSON, of files by their names below the folder."""
    entries = [{"md5": md5_of(path), "relpath": name} for path, name in paths.items()]
    entries.sort(key=lambda entry: entry["relpath"])
    return md5([json.dumps(entries, sort_keys=True).encode()]) + ".dir"


def cache_folder(project: Path) -> Path:
    """The folder of a project's DVC cache."""
    from dvc.config import Config

    folder = Config(dvc_dir=str(project / ".dvc"))["cache"].get("dir")
    return Path(folder) if folder else project / ".dvc" / "cache"


@contextmanager
def dvc_stages(pipeline: Path) -> Iterator[Sequence["LoadedStage"]]:
    """The stages of a dvc.yaml, while its project is locked.

    DVC keeps pickled objects in `core.site_cache_dir`, and runs programs that a remote's settings name: neither is
    taken from the project. Raises CleansetError for a project that DVC cannot read, and for a stage with anything but
    files of this machine and params, where DVC would ask an address; ModuleNotFoundError without dvc.
    """
    from dvc.config import Config
    from dvc.dirs import site_cache_dir
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    # DVC keeps its locks there
    check_no_links(pipeline.parent, pipeline.parent / ".dvc" / "tmp")
    own_cache = site_cache_dir(Config(validate=False).get("core", {}).get("site_cache_dir"))
    try:
        with Repo(str(pipeline.parent), config={"core": {"site_cache_dir": own_cache}}) as repo, repo.lock:
            repo.config["remote"] = {}
            stages = repo.stage.load_all(str(pipeline.resolve()))
            for entry in (entry for stage in stages for entry in (*stage.deps, *stage.outs)):
                if not _is_local(entry):
                    raise CleansetError(
                        f"{pipeline}: {shown(str(entry))}; expected files alone, and no address: edit it"
                    )
            yield stages
    except DvcException as error:  # no project of DVC, no git, a file that it cannot read
        raise CleansetError(
            f"{pipeline}: DVC cannot read it ({reason(error)}); expected a project of DVC: see dvc status"
        ) from None


def _is_local(entry: "Output") -> bool:
    from dvc.dependency import Dependency, ParamsDependency
    from dvc.output import Output

    # exactly: another kind is of a database, another repository or a registry of data sets
    return type(entry) in (Dependency, ParamsDependency, Output) and entry.fs.protocol == "local"
