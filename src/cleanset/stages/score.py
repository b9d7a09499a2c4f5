"""Stage score: top-5 classes and probabilities of one model on every image. No decision is made here."""

from functools import partial
from typing import TYPE_CHECKING, Literal, cast

from cleanset.edition.lists import check_list
from cleanset.edition.params import Model, Params, read_params
from cleanset.edition.paths import Edition, verified_images
from cleanset.edition.pipeline import check_params_named, check_roles
from cleanset.edition.versions import READING_LISTS, check_versions
from cleanset.errors import CleansetError
from cleanset.files import sha256
from cleanset.scoring.brought import random_scores, read_scores
from cleanset.scoring.record import ListRecord, ScoreRecord, write_record
from cleanset.sets.published.lists import ListScores, list_scores
from cleanset.tables import INDEX, SCORES, read_table, write_table

if TYPE_CHECKING:
    from cleanset.scoring.engine import ScoringRun, Settings
    from cleanset.scoring.models import LoadedModel
    from cleanset.scoring.validity import MadeFrom


def run(edition: Edition, role: str) -> None:
    """Read the index, the images and the model's weights, write data/scores/<role>.parquet and .json.

    The JSON is the provenance record of the scores; through it DVC locks the weights.
    Finished shards are kept beside them until the end, so that an interrupted run is continued.
    Of a model that is a published list or a table of scores only index and list are read.
    """
    params = read_params(edition.folder)
    model = params.model(role)
    check_params_named(edition)
    check_roles(edition, params.models)
    check_versions(edition, params.root, "score", READING_LISTS if model.is_list else None)
    check_pinned(params)
    if model.is_list:
        read_list(edition, role, model)
    else:
        run_network(edition, params, role)


def read_list(edition: Edition, role: str, model: Model) -> None:
    """Write the scores that a published list or a table gives, and their record, without a network."""
    check_list(edition.folder, role, model)
    classes = edition.read_classes()
    index = read_table(edition.index, INDEX, classes)
    labels = dict(zip(index["image_id"], index["real_classes"], strict=True))
    if model.source == "lists":
        found = list_scores(edition.folder, model, labels, classes)
    elif model.source == "scores":
        found = ListScores(read_scores(edition.path(str(model.file)), model.name, labels, classes), len(index), ())
    else:
        found = ListScores(random_scores(model.name, index, classes), 0, ())
    record = ListRecord(
        role=role,
        source=cast(Literal["lists", "scores", "random"], model.source),
        name=model.name,
        list_sha256=model.sha256,
        beyond_sha256=model.beyond_sha256,
        images=len(index),
        listed=found.listed,
        beyond=list(found.beyond),
    )
    write_table(edition.scores(role), found.table, SCORES, classes)
    write_record(edition.scored_with(role), record)


def run_network(edition: Edition, params: Params, role: str) -> None:
    """Write the scores of a network, and their record."""
    # torch is imported here, because a list needs none
    from cleanset.scoring.cluster import ClusterRun, score_shards_on_ray
    from cleanset.scoring.engine import settings_for

    settings = settings_for(params.score)
    settings.start_workers()
    scoring, made_from = prepare(edition, role, settings)
    record = record_of(params, role, scoring.model, len(scoring.index))
    on_cluster = None
    if params.score.engine == "ray":
        on_node = partial(prepare, Edition(edition.folder.resolve()), role, settings)
        on_cluster = partial(score_shards_on_ray, ClusterRun(on_node, made_from, settings))
    shards = scoring.shards(edition.partial_scores(role), made_from)
    with scoring:
        scores = scoring.scores(shards, on_cluster)
        record = record.model_copy(update={"against_float64": scoring.against_float64(scores)})
    write_table(edition.scores(role), scores, SCORES, scoring.classes)
    write_record(edition.scored_with(role), record)
    shards.remove()


def prepare(edition: Edition, role: str, settings: "Settings") -> tuple["ScoringRun", "MadeFrom"]:
    """The run of a network, and the inputs of its scores; each node of a cluster calls it."""
    from cleanset.measure.user_model import load_member
    from cleanset.scoring.engine import ScoringRun
    from cleanset.scoring.validity import MadeFrom, below_float64

    params = read_params(edition.folder)
    classes = edition.read_classes()
    index = read_table(edition.index, INDEX, classes)
    model = load_member(params.network(role), edition.folder, classes)
    made_from = MadeFrom(
        {
            "record": record_of(params, role, model, len(index)).model_dump(mode="json"),
            "index_sha256": sha256(edition.index.read_bytes()),
            **below_float64(settings),
        }
    )
    read = verified_images(edition, params.dataset.images, index, classes).read
    run = ScoringRun(name=f"score {role}", model=model, read=read, settings=settings, index=index, classes=classes)
    return run, made_from


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


def record_of(params: Params, role: str, model: "LoadedModel", images: int) -> ScoreRecord:
    """The record of a run, still without the exactness of a lower precision."""
    from cleanset.scoring.validity import code_of, library_versions

    entry = params.model(role)
    return ScoreRecord(
        role=role,
        source=entry.source,
        name=entry.name,
        threat_model=entry.threat_model,
        preprocessing=model.preprocessing,
        weights_sha256=model.weights_sha256,
        precision=params.score.precision,
        images=images,
        against_float64=None,
        versions=library_versions(),
        code=code_of("scoring"),
    )
