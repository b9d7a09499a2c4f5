"""The params and the files of models that an edition's dvc.yaml names, checked before a stage begins, and changed.

DVC reports a missing param only when its stage's turn comes, after the scoring. It has no list inside deps, so the
joint stages, which read the files of every model, name each of them.
"""

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from cleanset.edition.dvc_files import checked_pipeline
from cleanset.edition.params import EXPECTED_EDITION
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.plumbing.files import is_there
from cleanset.plumbing.validation import join_names, shown
from cleanset.plumbing.yaml_files import read_yaml

JOINT_STAGES = {
    "intersect": ("scores",),
    "count": ("scores", "margins", "crop_scores", "selection", "rejected"),
    "report": ("crop_scores", "selection", "rejected"),
}
"""The stages that read every model's files, and the folders of data/ whose tables they read."""

_FILE = re.compile(r"(data/[a-z_]+/)([a-z][a-z0-9_]*)(\.[a-z]+)")
"""A file of one model in deps: folder, role, ending."""

_ROLE = "${item.model}"


def check_params_named(edition: Edition) -> None:
    """Raise CleansetError, naming all, for params that stages in dvc.yaml name and params.yaml lacks.

    Without dvc.yaml nothing is checked.
    """
    if not is_there(edition.dvc_yaml):
        return
    content = read_yaml(edition.params_yaml, EXPECTED_EDITION)
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


def check_tables_named(edition: Edition, stage: str, tables: Mapping[str, str | None], remedy: str = "add it") -> None:
    """Check that the deps of a stage in the edition's dvc.yaml name its tables, by their keys in params.yaml.

    A table that is missing there would be read, but its changes would go unseen. Raises CleansetError that names the
    first. No dvc.yaml, or no such stage in it: no check.
    """
    if not is_there(edition.dvc_yaml):
        return
    pipeline = read_yaml(edition.dvc_yaml, "expected the pipeline of an edition, in UTF-8")
    deps = _table(_table(pipeline, "stages"), stage).get("deps")
    if not isinstance(deps, list):
        return
    for key, name in tables.items():
        if name is not None and posixpath.normpath(name) not in deps:
            raise CleansetError(
                f"{edition.dvc_yaml}: the deps of {stage} lack {name}, which {key} of params.yaml names; "
                f"expected it among them: {remedy.format(key.rpartition('.')[2])}"
            )


def with_table(pipeline: object, name: str) -> None:
    """Add a table to the deps of preprocess in `pipeline`, the content of a dvc.yaml, unless it is among them."""
    deps = _table(_table(pipeline, "stages"), "preprocess").get("deps")
    if isinstance(deps, list) and name not in deps:
        # behind images.sha256, which is first
        deps.insert(1, name)


def with_opened(pipeline: object, names: Sequence[str], no_more: Collection[str]) -> None:
    """Add files that models open to the deps of score in `pipeline`, without those that are opened `no_more`.

    DVC knows no list inside deps, so those of any model are of all.
    """
    deps = _table(_table(pipeline, "stages"), "score").get("deps")
    if isinstance(deps, list):
        kept = [dep for dep in deps if dep in names or dep not in no_more]
        deps[:] = [*kept, *(name for name in names if name not in kept)]


def params_named(pipeline: object, where: Path) -> Iterator[tuple[str, str]]:
    """Stage and key of each param of params.yaml that a pipeline names, keys with dots between their parts."""
    for stage, entries in checked_pipeline(pipeline, where)["stages"].items():
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
    path = edition.dvc_yaml
    roles = list(roles)
    if not is_there(path):
        return
    for stage, deps in joint_deps(read_yaml(path, "expected the pipeline of an edition, in UTF-8")):
        named = {dep for dep in deps if isinstance(dep, str) and _kind(dep) is not None}
        wanted = {name for kind in kinds(stage, deps) for name in files(kind, roles)}
        for name in sorted(wanted - named):
            raise CleansetError(
                f"{path}: the deps of {stage} lack {name}, of a model in params.yaml: add it to the others"
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
            # in another order: the list is written again
            if wanted[: len(kept)] != kept:
                kept = []
            deps[at:at] = wanted[len(kept) :]
            for dep in [each for each in present if each not in kept]:
                deps.remove(dep)


def joint_deps(pipeline: object) -> Iterator[tuple[str, list[object]]]:
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
