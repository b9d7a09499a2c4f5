"""The command `evaluate`: from names on the command line to the measures of each model, as tables or JSON."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cleanset.comparability import CardInterval, ComparabilityCard, card_model, clean_card
from cleanset.compare.model_index import check_hub, write_hub
from cleanset.compare.result_files import RESULTS, parse_results
from cleanset.dataset.class_names import class_names
from cleanset.dataset.ilsvrc import wnids
from cleanset.edition.params import Params, Score, read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.evaluate.predictions import Accuracy, Measures, measures
from cleanset.evaluate.sets import EvaluationSet, open_list, open_set
from cleanset.evaluate.specs import Spec, parse_specs
from cleanset.files import write_text
from cleanset.machine import cache_folder
from cleanset.validation import first_problem

MAX_COLUMNS = 6
"""Models that get a column each in the table of classes; of more, the mean."""
MEANING = "Interval: Wilson's. Confidence: mean softmax probability of the top-1 class."


@dataclass(frozen=True, slots=True)
class MeasuredModel:
    """A model with its measures; `record` says what its predictions were computed with, `path` where they are."""

    name: str
    measures: Measures
    record: dict[str, Any]
    path: Path | None


def by_accuracy(rows: Sequence[MeasuredModel]) -> list[MeasuredModel]:
    """The models by accuracy, the highest first; equal ones in the order in which they were given."""
    return sorted(rows, key=lambda row: -row.measures.overall.share)


def as_json(images: EvaluationSet, rows: Sequence[MeasuredModel]) -> str:
    """The set, and every model with all of its measures, by accuracy."""
    return json.dumps(content(images, rows), indent=2)


def content(images: EvaluationSet, rows: Sequence[MeasuredModel]) -> dict[str, Any]:
    """The content of the JSON; shares and confidences are between 0 and 1."""
    return {
        "set": {
            "name": images.name,
            "kind": images.kind,
            "images": len(images.items),
            "classes": len({item.class_index for item in images.items}),
            "checked_against": images.checked,
            "notes": list(images.notes),
        },
        "interval": "Wilson, 95 %",
        "comparability": card(images, rows).as_json(),
        "models": [_model(row) for row in by_accuracy(rows)],
    }


def card(images: EvaluationSet, rows: Sequence[MeasuredModel]) -> ComparabilityCard:
    """The comparability card of the measures on a set."""
    # of predictions made elsewhere the record has none
    pixels = next(filter(None, (row.record.get("pixels_sha256") for row in rows)), None)
    return clean_card(
        [(item.class_index, item.sha256) for item in images.items],
        pixels,
        CardInterval(kind="Wilson", level=0.95),
        {row.name: card_model(row.record) for row in rows},
        images.manifest_sha256,
    )


def _model(row: MeasuredModel) -> dict[str, Any]:
    measures, record = row.measures, row.record
    kept = ("preprocessing", "weights_sha256", "precision", "against_float64", "versions")
    return {
        "model": row.name,
        **_accuracy(measures.overall),
        "mean_confidence": measures.mean_confidence,
        "tiers": {tier: _accuracy(accuracy) for tier, accuracy in measures.tiers.items()},
        "classes": {wnids()[each]: _accuracy(accuracy) for each, accuracy in measures.classes.items()},
        **{key: record[key] for key in kept},
        "predictions": None if row.path is None else row.path.name,
    }


def _accuracy(accuracy: Accuracy) -> dict[str, Any]:
    return {
        "images": accuracy.images,
        "correct": accuracy.correct,
        "accuracy": accuracy.share,
        "interval": list(accuracy.interval),
    }


def as_text(images: EvaluationSet, rows: Sequence[MeasuredModel], most: int) -> Group:
    """The set, the models by accuracy, and the `most` hardest classes; fits into 80 columns."""
    order = by_accuracy(rows)
    parts: list[RenderableType] = [*_about(images), Text(), _leaderboard(order)]
    hardest = _hardest(order, most)
    if hardest:
        parts += [Text(), _classes(order, hardest)]
    return Group(*parts, Text(), Text(MEANING), Text(card(images, rows).line))


def _about(images: EvaluationSet) -> Iterator[Text]:
    classes = len({item.class_index for item in images.items})
    yield Text(f"{images.name}: {_counted(len(images.items), 'image')}, {_counted(classes, 'class', 'classes')}")
    if images.checked is None:
        yield Text("no manifest: which images these are was not checked")
    else:
        yield Text(f"SHA-256 of every image as in {images.checked}")
    for note in images.notes:
        yield Text(note)


def _counted(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _leaderboard(order: Sequence[MeasuredModel]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("model", overflow="fold", min_width=16, vertical="top")
    for header in ("accuracy", "95 % interval", "confidence"):
        table.add_column(header, justify="right", no_wrap=True)
    tiers = order[0].measures.tiers
    for tier, accuracy in tiers.items():
        table.add_column(f"{tier}\n({accuracy.images:,})", justify="right", no_wrap=True)
    for rank, row in enumerate(order, start=1):
        overall = row.measures.overall
        low, high = overall.interval
        table.add_row(
            str(rank),
            Text(row.name),
            f"{100 * overall.share:.2f} %",
            f"{100 * low:.2f} – {100 * high:.2f}",
            f"{row.measures.mean_confidence:.4f}",
            *(f"{100 * row.measures.tiers[tier].share:.1f}" for tier in tiers),
        )
    return table


def _hardest(order: Sequence[MeasuredModel], most: int) -> list[int]:
    """The classes with a misclassified image, lowest mean accuracy first; of equal ones the lower class index."""
    shares = {
        each: sum(row.measures.classes[each].share for row in order) / len(order) for each in order[0].measures.classes
    }
    return [each for each in sorted(shares, key=lambda each: (shares[each], each)) if shares[each] < 1][:most]


def _classes(order: Sequence[MeasuredModel], classes: Sequence[int]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("wnid", no_wrap=True)
    table.add_column("hardest classes", no_wrap=True, overflow="ellipsis", min_width=16)
    table.add_column("images", justify="right", no_wrap=True)
    single = len(order) <= MAX_COLUMNS
    headers = [f"#{rank}" for rank in range(1, len(order) + 1)] if single else ["mean"]
    for header in headers:
        table.add_column(header, justify="right", no_wrap=True)
    for each in classes:
        shares = [row.measures.classes[each].share for row in order]
        if not single:
            shares = [sum(shares) / len(shares)]
        images = order[0].measures.classes[each].images
        cells = (f"{100 * share:.0f} %" for share in shares)
        table.add_row(wnids()[each], Text(class_names()[each].name), f"{images:,}", *cells)
    return table


@dataclass(frozen=True, slots=True)
class ModelsToRun:
    """The models of a request, how to compute, and the roles of the edition."""

    specs: Sequence[Spec]
    score: Score
    roles: Sequence[str]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request to measure models, as named on the command line, on a set or on the images of a list."""

    name: str | None
    models: Sequence[str]
    architecture: str | None = None
    images: Path | None = None
    role: str | None = None
    precision: str | None = None
    device: str | None = None
    out: Path | None = None
    hub: Path | None = None

    def models_to_run(self, edition: Edition) -> ModelsToRun:
        """The models by their specs. Checks names, options and `out`, and imports no torch; raises CleansetError."""
        params = read_params(edition.folder) if edition.params_yaml.is_file() else None
        roles = params.models if params else {}
        score = score_settings(params, self.precision, self.device)
        weights = edition.folder if params else cache_folder()
        specs = parse_specs(self.models, self.architecture, roles, edition.folder, weights)
        if self.out is not None and self.out.exists() and not self.out.is_dir():
            raise CleansetError(f"{self.out}: a file; expected a folder, new or of an earlier evaluation")
        if self.hub is not None:
            check_hub(self.hub, self.models)
        return ModelsToRun(specs, score, list(roles))


def run(edition: Edition, wanted: Wanted) -> tuple[EvaluationSet, list[MeasuredModel]]:
    """Measure the models, in their order; with `out`, write predictions and results there, with `hub`, model cards.

    Names are checked and all images are read before torch is imported. Raises CleansetError that says what to do.
    """
    asked = wanted.models_to_run(edition)
    images = _images(edition, wanted, asked.roles)

    # imports torch, which takes seconds: a wrong name is reported before
    from cleanset.evaluate.run import evaluate, file_stems
    from cleanset.scoring.engine import settings_for

    evaluated = evaluate(asked.specs, images, settings_for(asked.score), wanted.out)
    rows = [MeasuredModel(each.name, measures(each.predictions), each.record, each.path) for each in evaluated]
    if wanted.out is not None:
        write_text(wanted.out / RESULTS, as_json(images, rows) + "\n")
    if wanted.hub is not None:
        stems = dict(zip(wanted.models, file_stems(asked.specs), strict=True))
        write_hub(wanted.hub, parse_results(content(images, rows), images.name), stems)
    return images, rows


def _images(edition: Edition, wanted: Wanted, roles: Sequence[str]) -> EvaluationSet:
    if (wanted.name is None) == (wanted.images is None):
        found = "neither" if wanted.name is None else "both"
        raise CleansetError(f"evaluate: {found} a set and --images; expected one of the two")
    if wanted.images is not None:
        return open_list(wanted.images, edition, wanted.role)
    if wanted.role is not None:
        raise CleansetError(f"--role {wanted.role}: goes with --images; expected the role as the set")
    return open_set(str(wanted.name), edition, roles)


def score_settings(params: Params | None, precision: str | None, device: str | None) -> Score:
    """Settings of the computation: the edition's params, or the defaults of stage score, overridden by the options."""
    score = params.score if params else Score()
    options = {"precision": precision, "device": device}
    given = {name: value for name, value in options.items() if value is not None}
    try:
        return Score.model_validate(score.model_dump() | given)
    except ValidationError as error:
        raise CleansetError(f"--{first_problem(error)}") from None
