"""The files of each model that the joint stages list in `dvc.yaml`: DVC has no list inside deps."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.yaml_files import read_yaml

JOINT_STAGES = {
    "intersect": ("scores",),
    "count": ("scores", "margins", "crop_scores", "selection", "rejected"),
    "report": ("crop_scores", "selection", "rejected"),
}
"""The stages that read every model's files, and the folders of data/ whose tables they read."""

_FILE = re.compile(r"(data/[a-z_]+/)([a-z][a-z0-9_]*)(\.[a-z]+)")
"""A file of one model in deps: folder, role, ending."""


def check_roles(edition: Edition, roles: Iterable[str]) -> None:
    """Check that the deps of the joint stages in the edition's dvc.yaml name the files of exactly these models.

    A model that is missing there would be read, but its changes would go unseen. Raises CleansetError that names the
    first missing or surplus file. No dvc.yaml, or no such stage in it: no check.
    """
    path, roles = edition.dvc_yaml, list(roles)
    if not path.is_file():
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

    A model that is there stays where it is; further ones follow the last, so that the order is that of `roles`.
    """
    for stage, deps in joint_deps(pipeline):
        for kind in kinds(stage, deps):
            wanted = files(kind, roles)
            present = [dep for dep in deps if _kind(dep) == kind]
            at = deps.index(present[-1]) + 1 if present else len(deps)
            kept = [dep for dep in present if dep in wanted]
            if wanted[: len(kept)] != kept:
                kept = []
            for new in reversed(wanted[len(kept) :]):
                deps.insert(at, new)
            for dep in present:
                if dep not in kept:
                    del deps[deps.index(dep)]


def joint_deps(pipeline: object) -> Iterator[tuple[str, list[Any]]]:
    """Name and deps of each joint stage that the content of a dvc.yaml has."""
    stages = pipeline.get("stages") if isinstance(pipeline, dict) else None
    for stage in JOINT_STAGES:
        entry = stages.get(stage) if isinstance(stages, dict) else None
        deps = entry.get("deps") if isinstance(entry, dict) else None
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
