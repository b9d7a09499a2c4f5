"""The models of an edition, as commands name them, and their entries in params.yaml and dvc.yaml."""

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, get_args

from cleanset.edition.lists import check_list
from cleanset.edition.params import Model, checked_params, read_params
from cleanset.edition.pipeline import with_opened, with_roles
from cleanset.edition.yaml_edit import InBraces, LayoutError, edited_text, flow_text
from cleanset.errors import CleansetError
from cleanset.plumbing.files import is_there, read_text, sha256_of, write_together
from cleanset.plumbing.validation import shown, validate
from cleanset.plumbing.yaml_files import parse_yaml

Models = Mapping[str, Model]
"""The models of an edition by role, in the order of the ensemble."""

_EXPECTED = (
    "expected ROLE=timm:NAME, ROLE=torchvision:NAME.WEIGHTS or ROLE=robustbench:THREAT/NAME, such as "
    "norm_robust=robustbench:Linf/Salman2020Do_R50; ROLE=module:MODULE:CALLABLE; ROLE=random:SEED; or "
    "ROLE=lists:FILE/NAME or ROLE=scores:FILE/NAME, a model in a file of published lists or of scores"
)
_SOURCES = get_args(Model.model_fields["source"].annotation)


def model_from_text(text: str) -> tuple[str, Model]:
    """Role and model of ROLE=SOURCE:NAME, as commands take them.

    For RobustBench ROLE=robustbench:THREAT/NAME; for a published list ROLE=lists:FILE/NAME (see `with_lists`).
    """
    role, _, address = text.partition("=")
    source, _, name = address.partition(":")
    fields = zoo_fields(source, name)
    name = fields["name"]
    if source in ("lists", "scores"):
        file, _, name = name.rpartition("/")
        fields |= {"file": file, "name": name}
    if not (role and name) or source not in _SOURCES:
        raise CleansetError(f"{shown(text)}: {_EXPECTED}")
    return role, validate(Model, fields, shown(text))


def zoo_fields(source: str, name: str) -> dict[str, str]:
    """The fields of a model given as SOURCE:NAME; for RobustBench, NAME is THREAT/NAME."""
    if source != "robustbench":
        return {"source": source, "name": name}
    threat_model, _, name = name.partition("/")
    return {"source": source, "name": name, "threat_model": threat_model}


def models_from_texts(texts: Iterable[str]) -> dict[str, Model]:
    """Models by role, each as `model_from_text` takes it. Raises CleansetError for a role that comes twice."""
    models: dict[str, Model] = {}
    for text in texts:
        role, model = model_from_text(text)
        if role in models:
            raise CleansetError(f"{shown(text)}: role {role} a second time; expected another role for each model")
        models[role] = model
    return models


def with_lists(models: Models, edition: Path) -> dict[str, Model]:
    """The same models; files of published lists, as given, are made relative to the edition's folder, and pinned.

    Raises CleansetError for a file that is missing or has no list of the model.
    """
    found = dict(models)
    for role, model in models.items():
        if model.file is not None:
            relative = Path(os.path.relpath(Path(str(model.file)).resolve(), edition.resolve())).as_posix()
            found[role] = model.model_copy(update={"file": relative, **check_list(Path(), role, model)})
    return found


def change_models(edition: Path, new: Models, removed: Collection[str]) -> None:
    """Remove models of the edition, with their published accuracies, then add others behind those that stay.

    Changes params.yaml and dvc.yaml: both, or neither.
    """
    params = read_params(edition)
    for role in removed:
        params.model(role)
    kept = {role: model for role, model in params.models.items() if role not in removed}
    for role in new:
        if role in kept:
            raise CleansetError(f"params.yaml: the model {role} exists already; choose another role, or remove it")
    if not (kept or new):
        raise CleansetError("params.yaml: no model would be left; expected at least one: add another, too")
    set_models(edition, {**kept, **new})


def pin_models(edition: Path, digests: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the SHA-256 of weights and lists into params.yaml, by role and key."""
    models = read_params(edition).models
    set_models(edition, {role: model.model_copy(update=digests.get(role, {})) for role, model in models.items()})


def changed_files(model: Model, edition: Path) -> list[str]:
    """The files of a model that have another SHA-256 than params.yaml, and those missing that a custom model opens."""
    named = {model.weights: model.sha256, model.file: model.sha256, model.beyond: model.beyond_sha256}
    # weights that are not there are fetched, or were not pulled
    pins = {name: digest for name, digest in named.items() if name and digest and is_there(edition / name)}
    pins |= model.files or {}
    found = {name: sha256_of(edition / name) if is_there(edition / name) else None for name in pins}
    return [name for name, digest in pins.items() if found[name] != digest]


def set_models(edition: Path, models: Models) -> None:
    """Change params.yaml and dvc.yaml so that the ensemble is exactly `models`: both files, or neither.

    After a kill the two may disagree, which `check_roles` finds before a stage runs.

    Everything else in them is left unchanged. Raises CleansetError, with the change to make by hand, for a file whose
    layout does not allow it.
    """
    texts = {}
    no_more = opened_by(read_params(edition).models)
    changes: dict[str, Callable[[str, Models], str]] = {
        "params.yaml": with_models,
        "dvc.yaml": partial(with_files_of, no_more=no_more),
    }
    for name, change in changes.items():
        path = edition / name
        if name == "params.yaml" or is_there(path):
            before = read_text(path, "save it as UTF-8")
            after = change(before, models)
            if after != before:
                texts[path] = after
    write_together(texts)


def with_models(text: str, models: Models) -> str:
    """The text of a params.yaml with exactly these models, and no published accuracy of any other."""
    content: Any = parse_yaml(text, "params.yaml")
    before = checked_params(content, "params.yaml").models
    fields = {role: model.model_dump(exclude_none=True) for role, model in models.items() if before.get(role) != model}
    new = [f"{role}: {flow_text(each)}" for role, each in fields.items()]
    surplus = [f"no {role}" for role in before if role not in models]
    advice = f"change section models by hand: {'; '.join(new + surplus)}"
    after = text
    if [role for role in before if role in models] != [role for role in models if role in before]:
        # an entry keeps its place, so that another order needs the section to be written again
        after = _edited(after, content | {"models": {}}, "params.yaml", advice)
    table = content["models"]
    content["models"] = {
        role: table[role] if before.get(role) == model else _entry(model, table.get(role))
        for role, model in models.items()
    }
    published = (content.get("count") or {}).get("published_top1") or {}
    for role, model in before.items():
        if role not in models or models[role].address != model.address:
            published.pop(role, None)
    # a new role or model may be one that params.yaml cannot have
    checked_params(content, "params.yaml")
    return _edited(after, content, "params.yaml", advice)


def opened_by(models: Models) -> list[str]:
    """The files in the edition's folder that custom models open, sorted."""
    return sorted({name for model in models.values() for name in model.files or ()})


def with_files_of(text: str, models: Models, no_more: Collection[str] = ()) -> str:
    """The text of a dvc.yaml whose joint stages list the files of exactly these models, and score what these open.

    `no_more`: what was opened before. Without a model nothing is known of confidences, and they are not drawn.
    """
    content: Any = parse_yaml(text, "dvc.yaml")
    with_roles(content, list(models))
    with_opened(content, opened_by(models), no_more)
    advice = f"list by hand the files of {', '.join(models)}, and no others, in the deps of intersect, count and report"
    return _with_plots(_edited(text, content, "dvc.yaml", advice), models)


_CONFIDENCE_PLOT = """\
  - report/plots/confidence:
      template: linear
      x: confidence
      y: [candidates, kept]
"""
"""The last entry of section `plots` of dvc.yaml."""


def _with_plots(text: str, models: Models) -> str:
    if all(model.is_random for model in models.values()):
        return text.replace(_CONFIDENCE_PLOT, "")
    is_lacking = "report/plots/confidence" not in text and text.endswith("y: images\n")
    return text + _CONFIDENCE_PLOT if is_lacking else text


def _edited(text: str, wanted: Mapping[str, object], name: str, advice: str) -> str:
    try:
        after = edited_text(text, wanted, name)
        if _comments(after) == _comments(text):
            return after
    except LayoutError:
        pass
    raise CleansetError(f"{name}: in this layout a change would touch other lines or comments; {advice}")


def _comments(text: str) -> list[tuple[str, str]]:
    """The comments on lines of their own, each with the key or item below it, "" at the end and below an entry.

    A comment above a removed model would be above another, one below its key would be gone.
    """
    found: list[tuple[str, str]] = []
    waiting: list[str] = []
    for line in [*filter(str.strip, text.splitlines()), ""]:
        if line.lstrip().startswith("#"):
            waiting.append(line)
        else:
            column = len(line) - len(line.lstrip())
            name = line.partition(":")[0]
            # what is indented further belongs to the entry above
            found += [(each, "" if len(each) - len(each.lstrip()) > column else name) for each in waiting]
            waiting = []
    return found


def _entry(model: Model, before: Mapping[str, object] | None) -> dict[str, object]:
    """An entry of section models: the fields with a value, and those that the file has with null."""
    if before is None:
        fields = model.model_dump(exclude_none=True)
        return fields if model.sha256 else InBraces(fields)
    return {
        key: value for key, value in model.model_dump().items() if value is not None or before.get(key, ...) is None
    }
