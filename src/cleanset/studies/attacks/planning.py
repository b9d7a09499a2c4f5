"""The plans of a study of attacks and of `attacks evaluate`: what each attack asks of each model, by its parameters."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic, process_time

from cleanset.errors import CleansetError
from cleanset.evaluation.models import NamedModel, check_model, lacks_weights
from cleanset.evaluation.specs import Spec, is_same_model
from cleanset.planning.costs import IMAGENET_IMAGE_BYTES, Costs, measured_costs, total_size
from cleanset.planning.stages import StageStates, stage_states, without_network
from cleanset.planning.work import NO_PASSES, Count, Passes, Plan, Work
from cleanset.plumbing.machine import available_cores
from cleanset.scoring.computation import Task, worker_devices
from cleanset.scoring.consistency import MAX_CHECKED, batches_to_ask
from cleanset.scoring.engine import settings_for
from cleanset.scoring.scorer import grouped
from cleanset.scoring.shards import finished_shards
from cleanset.studies.attacks.attacking import Search
from cleanset.studies.attacks.base import AttackPasses
from cleanset.studies.attacks.baselines import GROWING_STEPS, NOISE_POINTS, radii
from cleanset.studies.attacks.evaluated_models import EvaluatedModel, other_roles
from cleanset.studies.attacks.gradient_attacks import STANDARD_LOSSES, PgdAttack
from cleanset.studies.attacks.probing import FEW_STEPS, MODES, PARTS, RANDOM_STEPS
from cleanset.studies.attacks.request import AttackRequest
from cleanset.studies.attacks.study import AllParams, AttackParams, AttackStudy, Probe
from cleanset.studies.attacks.targets import Target
from cleanset.studies.robustness.images import first_images
from cleanset.studies.robustness.planning import expected_images, images_not_here

JUDGED = Passes(forward=2)
"""The image and the candidate, in the judge's precision."""


def passes_of_probe(probe: Probe, sources: int) -> AttackPasses:
    """The passes of the signs of gradient masking for one image: its answers, its neighbours, and the searches."""
    repeats = 3
    answered = Passes(forward=2 * repeats + len(MODES) + 1, backward=1)
    checked = Passes(forward=-(-sum(map(len, batches_to_ask(MAX_CHECKED))) // probe.images))
    # at the image and at a corner: the gradient, steps of two lengths to both sides (at random and along the gradient
    # in each part, along it in each color), single pixels
    near = Passes(forward=1 + 4 * (2 * PARTS**2 + 3) + RANDOM_STEPS, backward=1) * 2
    own = answered + checked + near
    for steps in (*(few for few in FEW_STEPS if few < probe.steps), probe.steps):
        own += _of_pgd(_plain(steps)) + Passes(forward=2)
    own += Passes(forward=probe.spsa_steps * (probe.spsa_samples + 1) + 2)
    growing = PgdAttack(steps=1, max_steps=GROWING_STEPS, losses=[*STANDARD_LOSSES], files=0)
    own += (_of_pgd(growing) + Passes(forward=2)) * len(radii(probe.eps))
    own += Passes(forward=NOISE_POINTS + 1 + 2 * sources)
    return AttackPasses(own=own, others=_of_pgd(_plain(probe.steps)))


def _of_pgd(attack: PgdAttack) -> Passes:
    return attack.passes(sources=0, classes=0).own


def _plain(steps: int) -> PgdAttack:
    """PGD as the probe has it."""
    return PgdAttack(steps=steps, max_steps=steps, losses=["cross_entropy"], files=0)


JUDGE_SHARE = 0.5
"""Share of the time of a command's imports that the process of the judge takes for those that its server lacks."""
SERVER_SHARE = 0.7
"""The same of the server of processes; where it has a core of its own it is not waited for."""
WARNINGS = "warnings"
"""The name of the search for signs of gradient masking."""
JUDGED_AGAIN = "judged again"
"""The name of the verdicts that a fresh process gives on all files of a model's attacks."""
PNG_BYTES = 90_000
"""Bytes of a photograph of 224 x 224 pixels as a PNG, about."""
TABLES = ("attack_results", "pages")
"""The stages without a network."""
BUDGET_NOTE = "The budget of the params is not counted: an attack ends once it is spent."


def attack_work(
    params: AttackParams, name: str, model: str, *, images: int, sources: int, classes: int, size: int
) -> Work:
    """The work of an attack on a model, or of the search for signs, none of it finished.

    `images`: the number of images of the model; `sources`: the number of source models; `classes`: the number of
    classes; `size`: bytes of the images.
    """
    if name == WARNINGS:
        of_image = passes_of_probe(params.probe, sources)
        limit: int | None = params.probe.images
    else:
        of_image = params.attack(name).passes(sources, classes)
        limit = params.images_of(name, model)
    count = images if limit is None else min(limit, images)
    passes = of_image.of_all(sources)
    return Work(
        name=name,
        model=model,
        images=count,
        of_image=passes + JUDGED,
        is_bound=passes.forward > 0,
        bytes_read=size * count // max(1, images),
        bytes_written=0 if name == WARNINGS else count * PNG_BYTES,
    )


def whole_work(evaluated: EvaluatedModel, name: str, *, size: int = 0) -> Work:
    """The work of an attack on a model, or of the search for signs on it, none of it finished.

    `size`: bytes of the images; 0 if bytes are not asked for.
    """
    request = evaluated.request
    return attack_work(
        request.params,
        name,
        evaluated.name,
        images=len(request.images.items),
        sources=len([each for each in request.others if not is_same_model(each, evaluated.spec)]),
        classes=len(evaluated.classes),
        size=size,
    )


def notes_of(params: AttackParams) -> list[str]:
    """The note on a budget, if there is one."""
    budget = params.budget
    return [] if budget.queries is None and budget.seconds is None else [BUDGET_NOTE]


def plan(study: AttackStudy) -> Plan:
    """The plan of a study of attacks; nothing is written or downloaded.

    Raises CleansetError for params or models that no stage would take.
    """
    params = AllParams.read(study)
    states = stage_states(study.folder)
    notes = notes_of(params.attacks)
    if not study.robustness.images.is_file():
        notes.append(images_not_here(study.robustness, params.edition, params.classes))
    tables = [without_network(each, states) for each in TABLES]
    return Plan(name=str(study.folder), works=[*study_works(study, params, states), *tables], notes=notes)


def study_works(study: AttackStudy, params: AllParams, states: StageStates) -> list[Work]:
    """A row for each attack and model, then the search for signs on each model; `states`: the states of the stages."""
    counted = Counted()
    attacks = params.attacks
    roles = list(params.edition.models)
    further = params.robustness.further_models
    probed = [(WARNINGS, model) for model in attacks.models(roles, further)]
    works = []
    for name, model in [*attacks.runs(roles, further), *probed]:
        stage = _stage(params, name, model)
        work = Work(name=name, model=model, state=states.state(stage))
        if work.state == "needed":
            try:
                work = _study_work(study, params, counted, work)
            except CleansetError as error:
                work = replace(work, remark=str(error))
        works.append(replace(work, stage=stage))
    return works


def _study_work(study: AttackStudy, params: AllParams, counted: "Counted", work: Work) -> Work:
    if study.robustness.images.is_file():
        return counted.work(EvaluatedModel.of_study(study, params, work.model), work.name)
    # at most as many as the params allow
    images = expected_images(params.edition, params.classes)
    return attack_work(
        params.attacks,
        work.name,
        work.model,
        images=images,
        sources=len(other_roles(params, work.model)),
        classes=len(params.classes),
        size=images * IMAGENET_IMAGE_BYTES,
    )


def _stage(params: AllParams, name: str, model: str) -> str:
    """The stage of dvc.yaml."""
    roles = params.edition.models
    kind = "attack" if model in roles else "wrapped" if model in params.attacks.wrapped else "further"
    if name == WARNINGS:
        return f"{kind}_warnings@{model}"
    if params.attacks.attack(name).reads_predictions:
        return f"{name}@{model}"
    return f"{'attacks' if kind == 'attack' else f'{kind}_attacks'}@{name}-{model}"


def counting(request: AttackRequest) -> Count:
    """Counts the attacks on models; what is finished in the folder of the request is taken off.

    Nothing is written or downloaded.
    """
    counted = Counted()
    settings = settings_for(request.score)

    def count() -> Plan:
        works = list[Work]()
        for name in request.stems:
            evaluated = EvaluatedModel(name=name, request=request, settings=settings)
            computations = [*request.params.attacks, *([WARNINGS] if request.warnings else [])]
            of_model = [counted.work(evaluated, each) for each in computations]
            works += [*of_model, *counted.judged_anew(evaluated, of_model)]
        return Plan(name=request.images.name, works=works, notes=notes_of(request.params))

    return count


def notice_of_signs(request: AttackRequest) -> str | None:
    """What the search for signs takes, if it is more than the attacks; None if it is less, or not asked for."""
    settings = settings_for(request.score)

    def passes(computations: Sequence[str]) -> int:
        works = [
            whole_work(EvaluatedModel(name=model, request=request, settings=settings), each)
            for model in request.stems
            for each in computations
        ]
        total = sum((each.passes for each in works), NO_PASSES)
        return total.forward + total.backward

    signs = passes([WARNINGS] if request.warnings else [])
    attacks = passes([*request.params.attacks])
    if signs <= attacks:
        return None
    return (
        f"the search for signs of gradient masking takes up to {signs:,} passes, the attacks {attacks:,}; "
        f"--no-warnings leaves it out"
    )


@dataclass(frozen=True, slots=True)
class Counted:
    """The models under attack, as far as they had to be opened."""

    opened: dict[str, tuple[NamedModel, Target]] = field(default_factory=dict)
    """By model."""
    imports: float = field(default_factory=process_time)
    """Processor seconds of this process so far: another one imports the same."""

    def work(self, evaluated: EvaluatedModel, name: str) -> Work:
        """An attack on a model, or the search for signs on it, without what an interrupted run has finished."""
        request = evaluated.request
        size = total_size([each.path for each in request.images.files.values()])
        work = whole_work(evaluated, name, size=size)
        # known mistakes are read, and signs are looked for at once: neither has parts
        if name == WARNINGS or request.params.attack(name).reads_predictions:
            return work
        folder = evaluated.results(name)
        # of a study DVC knows what is finished
        is_kept = not request.is_study and folder.record.is_file()
        work = replace(work, measure=partial(self._measure, evaluated, name))
        has_begun = is_kept or folder.partial.is_dir()
        if not has_begun or any(map(lacks_weights, (evaluated.spec, *_asked_others(evaluated, name)))):
            return work
        try:
            attacking = self._search(evaluated, name).attacking
        except CleansetError as error:
            return replace(work, remark=str(error))
        if is_kept and attacking.is_finished():
            return replace(work, state="finished")
        made_from = attacking.made_from(attacking.first_images())
        return replace(work, part=finished_shards(folder.partial, made_from.fingerprint))

    def _search(self, evaluated: EvaluatedModel, name: str) -> Search:
        named, target = self._opened(evaluated)
        return evaluated.search(name, named, target, evaluated.facts_of_others)

    def _opened(self, evaluated: EvaluatedModel) -> tuple[NamedModel, Target]:
        if evaluated.name not in self.opened:
            named = evaluated.open()
            self.opened[evaluated.name] = named, evaluated.target(named, evaluated.settings.devices[0])
        return self.opened[evaluated.name]

    def judged_anew(self, evaluated: EvaluatedModel, works: Sequence[Work]) -> list[Work]:
        """The verdicts on the files of all attacks, and on the images themselves, by the model loaded again."""
        counts = [work.images for work in works if work.state == "needed"]
        if not counts:
            return []
        measure = partial(self._measure_judging, evaluated)
        images = sum(counts) + max(counts)
        judged = Work(name=JUDGED_AGAIN, model=evaluated.name, images=images, of_image=Passes(forward=1))
        return [replace(judged, measure=measure)]

    def _measure(self, evaluated: EvaluatedModel, name: str) -> Costs:
        """The costs of an attack, whose groups are searched whole, as its workers do; nothing found is kept."""
        for spec in (evaluated.spec, *_asked_others(evaluated, name)):
            check_model(spec)

        def compute(groups: Sequence[Sequence[str]]) -> None:
            list(self._search(evaluated, name).results([Task(0, each) for each in groups]))

        params = evaluated.request.params
        files = first_images(evaluated.request.images.rows, params.images_of(name, evaluated.name))["file"].tolist()
        settings = evaluated.settings
        groups = [*grouped(files, params.attack(name).group_size)]
        workers = len(worker_devices(settings.devices, len(groups)))
        costs = measured_costs(compute, groups, clock=monotonic if settings.on_gpus else process_time)
        # a worker computes whole groups
        seconds = costs.image * math.ceil(len(groups) / workers)
        return replace(costs, image=seconds / len(files))

    def _measure_judging(self, evaluated: EvaluatedModel) -> Costs:
        """The costs of verdicts, one after the other in a process that imports and loads the model again."""

        def judge(files: Sequence[str]) -> None:
            target = self._opened(evaluated)[1]
            for file in files:
                target.judge.logits(target.pixels(file))

        costs = measured_costs(judge, [*evaluated.request.images.files])
        shares = SERVER_SHARE * (available_cores() == 1) + JUDGE_SHARE
        return replace(costs, start=costs.start + shares * self.imports)


def _asked_others(evaluated: EvaluatedModel, name: str) -> Sequence[Spec]:
    """The models that an attack makes images on."""
    request = evaluated.request
    return request.others if request.params.attack(name).reads_other_models else ()
