"""The models of an edition as they lie on disk: what `cleanset models` shows and pins."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import yaml
from rich.table import Table

from cleanset.edition import Edition
from cleanset.errors import CleansetError
from cleanset.files import write_text
from cleanset.params import Model, Params, read_params
from cleanset.scoring.downloads import what_instead_of_weights
from cleanset.scoring.models import preprocessing_of, sha256_of, weights_at_hand, weights_path

State = Literal["there", "missing", "other bytes", "not weights"]


@dataclass(frozen=True, slots=True)
class Member:
    """A model of the ensemble; `weights` is relative to the edition's folder, sums are SHA-256."""

    role: str
    source: str
    name: str
    threat_model: str | None
    preprocessing: str
    weights: str
    found: str | None
    pinned: str | None
    scored: str | None
    """Those that the scores in data/scores were computed with."""
    state: State


def members(edition: Edition) -> list[Member]:
    """Every model of an edition, in the order of params.yaml. Downloads nothing."""
    return [_member(edition, role, model) for role, model in read_params(edition.folder).models.items()]


def _member(edition: Edition, role: str, model: Model) -> Member:
    preprocessing = preprocessing_of(model).name
    path = weights_path(model, edition.folder)
    found = sha256_of(path) if path.is_file() else None
    state: State = "there"
    if found is None:
        state = "missing"
    elif what_instead_of_weights(path) is not None:
        state = "not weights"
    elif model.sha256 not in (None, found):
        state = "other bytes"
    return Member(
        role,
        model.source,
        model.name,
        model.threat_model,
        preprocessing,
        weights_path(model, Path()).as_posix(),
        found,
        model.sha256,
        _scored(edition, role),
        state,
    )


def _scored(edition: Edition, role: str) -> str | None:
    path = edition.scored_with(role)
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["weights_sha256"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        raise CleansetError(f"{path}: not what the score stage writes; run dvc checkout, or dvc repro") from None


def as_json(listed: list[Member]) -> str:
    """The same for programs: a list of objects, in the order of params.yaml."""
    return json.dumps([asdict(member) for member in listed], indent=2)


def as_table(listed: list[Member]) -> Table:
    """The same for people: 79 columns wide, because of the sums."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for number, member in enumerate(listed):
        if number:
            table.add_row()
        table.add_row("role", f"[bold]{member.role}[/bold]")
        table.add_row("model", " ".join(filter(None, (member.source, member.name, member.threat_model))))
        table.add_row("preprocessing", member.preprocessing)
        table.add_row("weights", member.weights)
        table.add_row("SHA-256", member.found or "")
        table.add_row("pinned", "the same" if member.found and member.found == member.pinned else member.pinned or "no")
        if member.scored is not None:
            table.add_row("scored with", "the same" if member.found == member.scored else member.scored)
        colour = "green" if member.state == "there" else "red"
        table.add_row("state", f"[{colour}]{member.state}[/{colour}]")
    return table


def pin(edition: Edition) -> list[str]:
    """Write the SHA-256 of all weights that have none yet into params.yaml; name the roles.

    Weights that are missing are downloaded first. From then on other bytes are refused.
    """
    models = read_params(edition.folder).models
    sums = {
        role: sha256_of(weights_at_hand(model, edition.folder))
        for role, model in models.items()
        if model.sha256 is None
    }
    if sums:
        path = edition.folder / "params.yaml"
        write_text(path, pinned(path.read_bytes().decode("utf-8"), sums))
    return list(sums)


def pinned(text: str, sums: dict[str, str]) -> str:
    """The text of a params.yaml with `sha256` added to the models of these roles, all else as it was.

    Raises CleansetError if the file is written in a way that this cannot be done to.
    """
    before = Params.model_validate(yaml.safe_load(text))
    wanted = before.model_dump()
    result = text
    try:
        for role, found in sums.items():
            result = _with_sum(result, role, found)
            wanted["models"][role]["sha256"] = found
        same = Params.model_validate(yaml.safe_load(result)).model_dump() == wanted
    except (AssertionError, ValueError, yaml.YAMLError):  # merged or aliased mappings
        same = False
    if not same:
        lines = ", ".join(f"models.{role}.sha256: {found}" for role, found in sums.items())
        raise CleansetError(f"params.yaml: cannot be changed without touching other lines; write yourself {lines}")
    return result


def _with_sum(text: str, role: str, found: str) -> str:
    """Insert the line, or in `{…}` the entry, after the last one of the role's model."""
    model = _value(_value(yaml.compose(text), "models"), role)
    assert isinstance(model, yaml.MappingNode)
    (key, _), (_, last) = model.value[0], model.value[-1]
    entry = f"sha256: {found}"
    null = next((value for name, value in model.value if name.value == "sha256"), None)
    if null is not None:
        space = "" if null.start_mark.index < null.end_mark.index else " "  # `sha256:` with nothing behind it
        return text[: null.start_mark.index] + space + found + text[null.end_mark.index :]
    if model.flow_style:
        at, inserted = last.end_mark.index, f", {entry}"
    else:
        end = text.find("\n", last.end_mark.index)
        at = len(text) if end < 0 else end
        at -= text[at - 1] == "\r"
        newline = "\r\n" if "\r\n" in text else "\n"
        inserted = f"{newline}{' ' * key.start_mark.column}{entry}"
    return text[:at] + inserted + text[at:]


def _value(node: yaml.Node | None, key: str) -> yaml.Node | None:
    """The value of a key that a mapping has."""
    assert isinstance(node, yaml.MappingNode)
    return next((value for name, value in node.value if name.value == key), None)
