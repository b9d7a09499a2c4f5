"""Stage score: top-5 classes and probabilities of one model on every image. No decision is made here."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, cast

import pandas as pd

from cleanset.classes import ClassTable
from cleanset.edition.lists import check_list
from cleanset.edition.params import Model, Params, read_params
from cleanset.edition.paths import Edition, verified_images
from cleanset.edition.pipeline import check_params_named, check_roles
from cleanset.edition.versions import READING_LISTS, check_versions
from cleanset.errors import CleansetError
from cleanset.evaluation.class_order import order_problem
from cleanset.plumbing.files import sha256
from cleanset.plumbing.progress import print_notice
from cleanset.scoring.brought import random_scores, read_scores
from cleanset.scoring.fingerprints import sources_sha256
from cleanset.scoring.gate import dependence_problem
from cleanset.scoring.record import ListRecord, ScoreRecord, write_record
from cleanset.selection.candidates import top1
from cleanset.sets.published.lists import ListScores, list_scores
from cleanset.tables import INDEX, SCORES, read_table, write_table

if TYPE_CHECKING:
    from cleanset.scoring.computation import Elsewhere, Opened, Place
    from cleanset.scoring.engine import ScoringRun, Settings
    from cleanset.scoring.models import LoadedModel
    from cleanset.scoring.validity import MadeFrom


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreInputs:
    """Everything that the scores of one model depend on, but for the bytes of images, weights and lists."""

    edition: Edition
    role: str
    params: Params
    model: Model
    classes: ClassTable
    index: pd.DataFrame
    """The images, a row of INDEX each."""

    index_sha256: str
    """Digest of the index's file."""


def run(edition: Edition, role: str) -> None:
    """Read the index, the images and the model's weights, write data/scores/<role>.parquet and .json.

    The JSON is the provenance record of the scores; through it DVC locks the weights.
    Finished shards are kept next to them until the end, so that an interrupted run is continued.
    For a published list or a table of scores, only the index and the list are read.
    """
    params = read_params(edition.folder)
    check_edition(edition, params, role)
    inputs = read_inputs(edition, params, role)
    if inputs.model.is_list:
        write_scores(inputs, *scores_of_list(inputs))
    else:
        run_network(inputs)


def read_inputs(edition: Edition, params: Params, role: str) -> ScoreInputs:
    """Read the class table and the index."""
    classes = edition.read_classes()
    index = read_table(edition.index, INDEX, classes)
    return ScoreInputs(
        edition=edition,
        role=role,
        params=params,
        model=params.model(role),
        classes=classes,
        index=index,
        index_sha256=sha256(edition.index.read_bytes()),
    )


def check_edition(edition: Edition, params: Params, role: str) -> None:
    """Raise CleansetError where the scores would not be those of this edition's params, versions and pinned files."""
    model = params.model(role)
    check_params_named(edition)
    check_roles(edition, params.models)
    check_versions(edition, params.root, "score", READING_LISTS if model.is_list else None)
    check_pinned(params)
    if model.is_list:
        check_list(edition.folder, role, model)


def write_scores(inputs: ScoreInputs, scores: pd.DataFrame, record: ScoreRecord | ListRecord) -> None:
    """Write the scores, then their record."""
    write_table(inputs.edition.scores(inputs.role), scores, SCORES, inputs.classes)
    write_record(inputs.edition.scored_with(inputs.role), record)


def scores_of_list(inputs: ScoreInputs) -> tuple[pd.DataFrame, ListRecord]:
    """The scores that a published list or a table gives, and their record, without a network."""
    model = inputs.model
    index = inputs.index
    labels = dict(zip(index["image_id"], index["real_classes"], strict=True))
    if model.source == "lists":
        found = list_scores(inputs.edition.folder, model, labels, inputs.classes)
    elif model.source == "scores":
        table = read_scores(inputs.edition.path(str(model.file)), model.name, labels, inputs.classes)
        found = ListScores(table, len(index), ())
    else:
        found = ListScores(random_scores(model.name, index, inputs.classes), 0, ())
    record = ListRecord(
        role=inputs.role,
        source=cast(Literal["lists", "scores", "random"], model.source),
        name=model.name,
        list_sha256=model.sha256,
        beyond_sha256=model.beyond_sha256,
        images=len(index),
        listed=found.listed,
        beyond=list(found.beyond),
    )
    return found.table, record


def run_network(inputs: ScoreInputs) -> None:
    """Compute the scores of a network, and write them and their record."""
    # torch is imported here, because a list needs none
    from cleanset.scoring.engine import settings_for

    settings = settings_for(inputs.params.score)
    settings.start_workers()
    scoring, made_from = network_run(inputs, settings)
    engine = inputs.params.engine
    shards = scoring.shards(inputs.edition.partial_scores(inputs.role), made_from)
    if engine == "local" and shards.missing:
        check_dependence(inputs, scoring, settings)
    with scoring:
        scores = scoring.scores(shards, elsewhere_of(inputs, settings, made_from), engine)
        against_float64 = scoring.against_float64(scores)
    # before the scores are written; finished shards stay, should the model be meant so
    check_class_order(inputs, scoring.model, scores)
    record = record_of(inputs, scoring.model).model_copy(update={"against_float64": against_float64})
    write_scores(inputs, scores, record)
    shards.remove()


def check_dependence(inputs: ScoreInputs, scoring: "ScoringRun", settings: "Settings") -> None:
    """Raise CleansetError if the logits of the first images depend on more than the image.

    A custom model alone is asked, for a batch five times: zoos set theirs to evaluation.
    """
    from cleanset.scoring.engine import dependence_of

    if inputs.model.source != "module":
        return
    when = dependence_of(scoring.model, scoring.read, inputs.index["image_id"].tolist(), settings)
    if when is not None:
        raise CleansetError(dependence_problem(f"score {inputs.role}", when))


def check_class_order(inputs: ScoreInputs, model: "LoadedModel", scores: pd.DataFrame) -> None:
    """Raise CleansetError if another order of classes explains the scores far better than the one in use.

    A custom model that states its order is not checked; for a zoo's, which cannot state it, a notice is printed.
    """
    if model.order_is_stated:
        return
    single = top1(inputs.index, scores)
    single = single[single["single"]]
    labels = single["real_classes"].str[0].astype("int64").tolist()
    problem = order_problem(labels, single["top1"].tolist(), inputs.classes)
    if not problem:
        return
    text = f"score {inputs.role}: {problem}"
    if inputs.model.source == "module":
        raise CleansetError(text)
    print_notice(text)


def elsewhere_of(inputs: ScoreInputs, settings: "Settings", made_from: "MadeFrom") -> "Elsewhere[pd.DataFrame]":
    """The scoring of a network as another machine opens it, under the same path."""
    from cleanset.scoring.computation import Elsewhere

    opening = partial(open_on_node, Edition(inputs.edition.folder.resolve()), inputs.role, settings)
    return Elsewhere(name=f"score {inputs.role}", open=opening, made_from=made_from)


def open_on_node(edition: Edition, role: str, settings: "Settings", place: "Place") -> "Opened[pd.DataFrame]":
    """The scoring of a network from an edition's files, as each node of a cluster opens it."""
    from cleanset.scoring.engine import open_on_node as opened

    inputs = read_inputs(edition, read_params(edition.folder), role)
    return opened(*network_run(inputs, settings), place)


def load_network(edition: Edition, params: Params, role: str, classes: ClassTable) -> "LoadedModel":
    """The network of a role, with its weights."""
    from cleanset.evaluation.user_model import load_member

    return load_member(params.network(role), edition.folder, classes)


def network_run(inputs: ScoreInputs, settings: "Settings") -> tuple["ScoringRun", "MadeFrom"]:
    """The run of a network, and the facts that its scores were made from; reads its weights."""
    from cleanset.scoring.engine import ScoringRun
    from cleanset.scoring.validity import made_from_images

    edition = inputs.edition
    params = inputs.params
    model = load_network(edition, params, inputs.role, inputs.classes)
    facts = made_from_images(
        record_of(inputs, model).model_dump(mode="json"),
        images={"index_sha256": inputs.index_sha256},
        classes=inputs.classes,
        code=["scoring"],
        model=model,
        settings=settings,
        further={"files": inputs.model.files} if inputs.model.files else {},
    )
    run = ScoringRun(
        name=f"score {inputs.role}",
        model=model,
        read=verified_images(edition, params.dataset.images, inputs.index, inputs.classes).read,
        settings=settings,
        index=inputs.index,
        classes=inputs.classes,
    )
    return run, facts


def check_pinned(params: Params) -> None:
    """Raise CleansetError unless the SHA-256 of all models' weights and lists are in params.yaml.

    Scores are of known weights; and DVC sees a changed list by its SHA-256 alone.
    """
    unpinned = [role for role, model in params.models.items() if not model.is_pinned]
    if unpinned:
        networks = [role for role in unpinned if not params.models[role].is_list]
        what, how = ("weights", "downloads them and writes it") if networks else ("list", "writes it")
        raise CleansetError(
            f"params.yaml: no sha256 of the {what} of {', '.join(networks or unpinned)}: run cleanset models --pin "
            f"first, which {how}"
        )


def record_of(inputs: ScoreInputs, model: "LoadedModel") -> ScoreRecord:
    """The record of a run, still without the exactness of a lower precision."""
    from cleanset.scoring.validity import code_of, library_versions

    module = inputs.model.module
    return ScoreRecord(
        role=inputs.role,
        source=inputs.model.source,
        name=inputs.model.name,
        threat_model=inputs.model.threat_model,
        preprocessing=model.preprocessing,
        weights_sha256=model.weights_sha256,
        precision=inputs.params.score.precision,
        images=len(inputs.index),
        against_float64=None,
        versions=library_versions(),
        code=code_of("scoring"),
        module_sha256=None if module is None else sources_sha256(module, inputs.edition.folder),
    )
