"""What `dvc.yaml` must say that DVC cannot check."""

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

import yaml

from cleanset.errors import CleansetError


def check_roles(edition: Path, stage: str, roles: Iterable[str], table: str = "scores") -> None:
    """Check that the deps of `stage` in the edition's dvc.yaml name this table of exactly these models.

    DVC has no list inside deps: a model that is missing there would be read, but its changes go
    unseen. Raises CleansetError for the first that is missing or too many. No dvc.yaml, or
    no such stage in it: no check.
    """
    path = edition / "dvc.yaml"
    if not path.is_file():
        return
    deps = yaml.safe_load(path.read_text(encoding="utf-8"))["stages"].get(stage, {}).get("deps")
    if deps is None:
        return
    named = {PurePosixPath(dep).stem for dep in deps if dep.startswith(f"data/{table}/")}
    for role in roles:
        if role not in named:
            raise CleansetError(
                f"{path}: the deps of {stage} lack model {role} of params.yaml: add its files beside the others'"
            )
    for role in sorted(named - set(roles)):
        raise CleansetError(f"{path}: the deps of {stage} name model {role}, which params.yaml lacks: remove its files")
