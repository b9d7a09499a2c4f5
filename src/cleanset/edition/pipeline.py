"""The params that dvc.yaml names: DVC reports a missing one only when its stage's turn comes, after the scoring."""

from collections.abc import Iterator
from pathlib import Path

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.validation import listed, shown
from cleanset.yaml_files import read_yaml

_ROLE = "${item.model}"


def check_params_named(edition: Edition) -> None:
    """Raise CleansetError, naming all, for params that stages in dvc.yaml name and params.yaml lacks.

    Without dvc.yaml there is nothing to check.
    """
    if not edition.dvc_yaml.is_file():
        return
    content = read_yaml(
        edition.params_yaml, "expected the folder of an edition, with params.yaml in UTF-8 (see README)"
    )
    pipeline = read_yaml(edition.dvc_yaml, "expected the pipeline of an edition, in UTF-8")
    missing: dict[str, str] = {}  # the first stage that needs it, by key
    for stage, key in params_named(pipeline, edition.dvc_yaml):
        keys = [key.replace(_ROLE, role) for role in _table(content, "models")] if _ROLE in key else [key]
        for key in keys:
            if not _has(content, key):
                missing.setdefault(key, stage)
    # a section is there as soon as one of its keys is
    missing = {
        key: stage for key, stage in missing.items() if not any(other.startswith(f"{key}.") for other in missing)
    }
    if missing:
        stages = list(dict.fromkeys(missing.values()))
        named = f"stage {listed(stages)} of {edition.dvc_yaml} names: add it"
        if len(missing) > 1:
            named = f"stages of {edition.dvc_yaml} name ({listed(stages)}): add them"
        raise CleansetError(f"{edition.params_yaml}: no {listed(missing)}, which {named}, as in imagenet/params.yaml")


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
