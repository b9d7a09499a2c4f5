"""Reading DVC's files, and the checks before a stage begins: params, files of models, versions of libraries.

DVC reports a missing param only when its stage's turn comes, after the scoring. It has no list inside deps, so the
joint stages, which read the files of every model, name each of them. DVC sees files, not installed packages: without
the check of versions a new Pillow or torch would give other bytes unseen.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import yaml

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.files import is_there, read_text
from cleanset.validation import join_names, shown
from cleanset.yaml_files import read_yaml

JOINT_STAGES = {
    "intersect": ("scores",),
    "count": ("scores", "margins", "crop_scores", "selection", "rejected"),
    "report": ("crop_scores", "selection", "rejected"),
}
"""The stages that read every model's files, and the folders of data/ whose tables they read."""

_FILE = re.compile(r"(data/[a-z_]+/)([a-z][a-z0-9_]*)(\.[a-z]+)")
"""A file of one model in deps: folder, role, ending."""

_ROLE = "${item.model}"

COMPUTING = ("numpy", "pillow", "robustbench", "timm", "torch")
"""Libraries that compute scores; their versions are recorded beside the scores."""
DECISIVE = {
    "preprocess": ("pillow", "pyarrow"),
    "score": (*COMPUTING, "pyarrow"),
    "export": ("pillow",),
}
"""Libraries by stage: Pillow decodes and encodes images, pyarrow writes its version into Parquet, others compute."""
READING_LISTS = ("numpy", "pyarrow")
"""Libraries that stage score needs of a model that is a published list."""

_VERSION_FILE = {"preprocess": "dataset", "score": "scoring"}

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


def load_yaml(text: str, with_aliases: bool = True) -> Any:
    """The content of a dvc.yaml or dvc.lock, which may have more than files that people write (see `parse_yaml`).

    Raises YAMLError, and ValueError for deep nesting. Aliases, which can grow without bounds, are refused unless
    `with_aliases`.
    """
    # the events first: it is building nested values that crashes
    depth, loader = 0, yaml.CSafeLoader(text)
    while loader.check_event():
        event = loader.get_event()
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_FILE_DEPTH:
            raise ValueError(f"lists or tables more than {MAX_FILE_DEPTH} deep")
        if isinstance(event, yaml.AliasEvent) and not with_aliases:
            raise ValueError("an alias")
    return yaml.load(text, Loader=_Loader)


def stages_in(text: str, with_aliases: bool = True) -> dict[str, dict[str, Any]]:
    """The stages of a dvc.yaml or dvc.lock by name. Raises YAMLError or ValueError as `load_yaml` does, and without."""
    content = load_yaml(text, with_aliases)
    stages = content.get("stages") if isinstance(content, dict) else None
    if not (isinstance(stages, dict) and all(isinstance(stage, dict) for stage in stages.values())):
        raise ValueError("no table of stages")
    return stages


def object_path(digest: str) -> str:
    """The path of a file in DVC's cache and on its remotes, by its MD5."""
    return f"files/md5/{digest[:2]}/{digest[2:]}"


def check_params_named(edition: Edition) -> None:
    """Raise CleansetError, naming all, for params that stages in dvc.yaml name and params.yaml lacks.

    Without dvc.yaml nothing is checked.
    """
    if not is_there(edition.dvc_yaml):
        return
    content = read_yaml(
        edition.params_yaml, "expected the folder of an edition, with params.yaml in UTF-8 (see README)"
    )
    pipeline = read_yaml(edition.dvc_yaml, "expected the pipeline of an edition, in UTF-8")
    missing: dict[str, str] = {}  # the first stage that needs it, by key
    for stage, key in params_named(pipeline, edition.dvc_yaml):
        keys = [key.replace(_ROLE, role) for role in _table(content, "models")] if _ROLE in key else [key]
        missing |= {each: stage for each in keys if not _has(content, each) and each not in missing}
    # a section is there as soon as one of its keys is
    needed = {key: stage for key, stage in missing.items() if not any(other.startswith(f"{key}.") for other in missing)}
    if needed:
        stages = join_names(dict.fromkeys(needed.values()))
        named = f"stage {stages} of {edition.dvc_yaml} names: add it"
        if len(needed) > 1:
            named = f"stages of {edition.dvc_yaml} name ({stages}): add them"
        raise CleansetError(
            f"{edition.params_yaml}: no {join_names(needed)}, which {named}, as in imagenet/params.yaml"
        )


def params_named(pipeline: object, where: Path) -> Iterator[tuple[str, str]]:
    """Stage and key of each param of params.yaml that a pipeline names, keys with dots between their parts."""
    stages = pipeline.get("stages") if isinstance(pipeline, dict) else None
    if not isinstance(stages, dict):
        raise CleansetError(f"{where}: no stages; expected the pipeline of an edition")
    for stage, entries in stages.items():
        named = entries.get("params", []) if isinstance(entries, dict) else None
        if not isinstance(named, list):
            raise CleansetError(f"{where}: params of stage {shown(stage)}; expected a list of keys")
        yield from ((stage, key) for key in named if isinstance(key, str))  # a table names another file's


def _table(content: object, key: str) -> dict[str, object]:
    table = content.get(key) if isinstance(content, dict) else None
    return table if isinstance(table, dict) else {}


def _has(content: object, key: str) -> bool:
    for part in key.split("."):
        if not isinstance(content, dict) or part not in content:
            return False
        content = content[part]
    return True


def check_roles(edition: Edition, roles: Iterable[str]) -> None:
    """Check that the deps of the joint stages in the edition's dvc.yaml name the files of exactly these models.

    A model that is missing there would be read, but its changes would go unseen. Raises CleansetError that names the
    first missing or surplus file. No dvc.yaml, or no such stage in it: no check.
    """
    path, roles = edition.dvc_yaml, list(roles)
    if not is_there(path):
        return
    for stage, deps in joint_deps(read_yaml(path, "expected the pipeline of an edition, in UTF-8")):
        named = {dep for dep in deps if _kind(dep) is not None}
        wanted = {name for kind in kinds(stage, deps) for name in files(kind, roles)}
        for name in sorted(wanted - named):
            raise CleansetError(
                f"{path}: the deps of {stage} lack {name}, of a model in params.yaml: add it beside the others"
            )
        for name in sorted(named - wanted):
            raise CleansetError(
                f"{path}: the deps of {stage} name {name}, of a model that params.yaml lacks: remove it"
            )


def with_roles(pipeline: object, roles: Sequence[str]) -> None:
    """Change the deps of the joint stages in `pipeline`, the content of a dvc.yaml, to the files of these models.

    A model that is there stays where it is; further ones follow the last, in the order of `roles`.
    """
    for stage, deps in joint_deps(pipeline):
        for kind in kinds(stage, deps):
            wanted = files(kind, roles)
            present = [dep for dep in deps if _kind(dep) == kind]
            at = deps.index(present[-1]) + 1 if present else len(deps)
            kept = [dep for dep in present if dep in wanted]
            # in another order: the list is written anew
            if wanted[: len(kept)] != kept:
                kept = []
            deps[at:at] = wanted[len(kept) :]
            for dep in [each for each in present if each not in kept]:
                deps.remove(dep)


def joint_deps(pipeline: object) -> Iterator[tuple[str, list[Any]]]:
    """Name and deps of each joint stage that the content of a dvc.yaml has."""
    stages = _table(pipeline, "stages")
    for stage in JOINT_STAGES:
        deps = _table(stages, stage).get("deps")
        if isinstance(deps, list):
            yield stage, deps


def kinds(stage: str, deps: Iterable[object]) -> list[tuple[str, str]]:
    """Folder and ending of the files that a joint stage lists for each model: those it reads, and any others there."""
    needed = {(f"data/{table}/", ".parquet") for table in JOINT_STAGES[stage]}
    return sorted(needed | {kind for dep in deps if (kind := _kind(dep)) is not None})


def files(kind: tuple[str, str], roles: Iterable[str]) -> list[str]:
    """The file of each model in a folder."""
    folder, ending = kind
    return [f"{folder}{role}{ending}" for role in roles]


def _kind(dep: object) -> tuple[str, str] | None:
    """Folder and ending of a model's file; None for another dep."""
    match = _FILE.fullmatch(dep) if isinstance(dep, str) else None
    return (match[1], match[3]) if match else None


def check_versions(edition: Edition, root: str, stage: str, libraries: Iterable[str] | None = None) -> None:
    """Raise CleansetError if a library that decides the bytes of `stage` is installed in another version than locked.

    `libraries`: only these, where a run of the stage needs fewer than all. `root` (of params.yaml) leads to the folder
    with requirements.txt. Without that file, as beside an installed package, nothing is locked and nothing is compared.
    """
    lock = edition.path(root) / "requirements.txt"
    if not is_there(lock):
        return
    wanted = DECISIVE[stage] if libraries is None else tuple(libraries)
    locked = locked_versions(read_text(lock, "expected the output of make lock"), wanted)
    for name in wanted:
        found = installed_version(name)
        if name in locked and found != locked[name]:
            raise CleansetError(_difference(name, found, locked[name], lock, stage))


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


def _difference(name: str, found: str | None, locked: str, lock: Path, stage: str) -> str:
    folder = _VERSION_FILE.get(stage)
    anew = f"raise src/cleanset/{folder}/VERSION" if folder else f"run dvc repro --force {stage}"
    installed = "not installed" if found is None else f"{found} is installed"
    return (
        f"{name}: {installed}, {locked} is locked in {lock}; expected the locked version, which decides the bytes of "
        f"stage {stage}: install it (pip install {name}=={locked}), or lock anew (make lock) and {anew}"
    )
