"""Any models attacked outside DVC, as `attacks evaluate` does: each loaded, attacked, searched for signs, judged anew.

A model that cannot be loaded, or an attack that fails, is a problem of its own: the results of all others stay.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from types import MappingProxyType

import pandas as pd

from cleanset.classes import ClassTable
from cleanset.errors import CleansetError
from cleanset.measure.run import NamedModel, load
from cleanset.measure.specs import CommandModel, ModuleModel, Spec, file_stems, is_same_model
from cleanset.plumbing.json_files import JsonMapping, JsonObject
from cleanset.scoring.computation import Opened, Place
from cleanset.scoring.decoding import worker_processes
from cleanset.scoring.devices import Device
from cleanset.scoring.differentiable import PixelNetwork
from cleanset.scoring.engine import Settings
from cleanset.scoring.models import LoadedModel
from cleanset.studies.attacks.attacking import SEARCHING, Attacking, FoundGroup, OtherSearches, Search, writers_beside
from cleanset.studies.attacks.base import Known
from cleanset.studies.attacks.judge import Judge
from cleanset.studies.attacks.lpips_distance import lpips_of
from cleanset.studies.attacks.results import NAMED_ATTACKED
from cleanset.studies.attacks.straight_through import with_straight_through
from cleanset.studies.attacks.study import AttackedFolder, AttackRequest
from cleanset.studies.attacks.targets import AttackedModel, Searching
from cleanset.studies.attacks.threats import PROBE
from cleanset.studies.attacks.warning_stage import probed, settled_with_probe
from cleanset.studies.attacks.warnings import WarningRecord
from cleanset.studies.robustness.image_sets import OpenedImages
from cleanset.studies.robustness.images import StudyFile

EVALUATING = (__name__, *SEARCHING)
"""Modules that a worker process of `attacks evaluate` imports."""


def evaluate(
    specs: Sequence[Spec],
    others: Sequence[Spec],
    images: OpenedImages,
    settings: Settings,
    request: AttackRequest,
    classes: ClassTable,
) -> tuple[dict[tuple[str, str], pd.DataFrame], dict[str, WarningRecord], dict[tuple[str, str], str]]:
    """Attack any models outside DVC: by attack and model the rows of NAMED_ATTACKED, by model its warnings.

    The last: by attack and model the problem that prevented a run; the results of all others stay.

    `others`: the models that images are made on; `classes`: the class table of the images. Raises CleansetError if
    nothing can be run.
    """
    worker_processes(EVALUATING)
    results = dict[tuple[str, str], pd.DataFrame]()
    problems = dict[tuple[str, str], str]()
    records = dict[str, WarningRecord | None]()
    # each is loaded once for this, whatever number of models is attacked
    facts_of_others = cache(partial(facts_of_models, others, settings, classes))
    for spec, stem in zip(specs, file_stems([spec.text for spec in specs]), strict=True):
        evaluated = EvaluatedModel(
            spec=spec, stem=stem, others=others, images=images.images, files=images.files, settings=settings,
            request=request, classes=classes,
        )  # fmt: skip
        try:
            named = load(spec, settings, classes)
        except CleansetError as error:
            problems |= {(name, spec.text): str(error) for name in request.params.attacks}
            continue
        target = evaluated.target(named, settings.devices[0])
        is_command = isinstance(spec, CommandModel)
        finished = list[Attacking]()
        for name in request.params.attacks:
            try:
                search = evaluated.search(name, named, target, facts_of_others)
                search.attacking.run_unfinished(search, evaluated.other_searches(name))
            except CleansetError as error:
                problems[name, spec.text] = str(error)
            else:
                finished.append(search.attacking)
        if finished:
            is_custom = isinstance(spec, CommandModel | ModuleModel)
            anew = partial(_anew, spec, settings, classes)
            kept = evaluated.attacking(PROBE, target)
            try:
                found = probed(kept, evaluated.sources(target), is_command=is_command) if request.warnings else None
                record = settled_with_probe(finished, kept, found, anew, is_custom=is_custom)
            except CleansetError as error:
                problems["verdicts and warnings", spec.text] = str(error)
            else:
                records[spec.text] = record
                results |= {(each.name, spec.text): each.results() for each in finished}
    if not results:
        raise CleansetError(next(iter(problems.values())))
    return results, {model: each for model, each in records.items() if each is not None}, problems


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatedModel:
    """A model that is attacked outside DVC; it can be sent to another process, which loads the model anew."""

    spec: Spec
    stem: str
    """The name of its folders."""
    others: Sequence[Spec]
    """The models that images are made on."""
    images: pd.DataFrame
    """Rows of STUDY_IMAGES."""
    files: Mapping[str, StudyFile]
    """Where each image lies, by file."""
    settings: Settings
    request: AttackRequest
    classes: ClassTable

    def target(self, named: NamedModel, device: Device) -> AttackedModel:
        """The model under attack on a device."""
        params = self.request.params
        lpips = lpips_of(self.request.lpips_folder, params, device.torch)
        return AttackedModel(
            name=named.name,
            model=named.loaded,
            images=self.images,
            files=self.files,
            classes=self.classes,
            judge=Judge(named.loaded, device.torch, lpips, self.settings.precision),
            how=Searching(device.torch, params.search_precision, self.settings.batch_size),
            seed=params.seed,
            searched=with_straight_through(named.loaded.network, self.request.straight_through),
        )

    def search(
        self, name: str, named: NamedModel, target: AttackedModel, facts_of_others: Callable[[], JsonMapping]
    ) -> Search:
        """The worker of an attack in this process."""
        facts: JsonObject = {
            "identity": named.identity,
            "judged_in": self.settings.precision,
            "straight_through": [*self.request.straight_through],
        }
        if self.request.params.attack(name).reads_other_models:
            facts["made_on"] = facts_of_others()
        # loaded anew for each attack: what a random source has drawn before must not count
        known = Known(self.request.params.seed, target.others, cache(partial(self.sources, target)))
        attacking = self.attacking(name, target, further=facts)
        return Search(attacking=attacking, known=known, writers=writers_beside(target.how.device))

    def other_searches(self, name: str) -> OtherSearches:
        """The workers of an attack on all devices; a program decides itself how many cores it takes."""
        opening = None if isinstance(self.spec, CommandModel) else partial(_open_evaluated, self, name)
        return OtherSearches(devices=self.settings.devices, open=opening)

    def attacking(self, name: str, target: AttackedModel, further: JsonMapping = MappingProxyType({})) -> Attacking:
        """An attack whose results are below the folder of the request."""
        folder = self.results(name)
        return Attacking(self.request.params, name, target, folder, further=further, table=NAMED_ATTACKED)

    def results(self, name: str) -> AttackedFolder:
        """The results of an attack, below the folder of the request."""
        return AttackedFolder(self.request.out / "attacks" / name / self.stem)

    def sources(self, target: AttackedModel) -> dict[str, PixelNetwork]:
        """The other models as networks on the pixels that the model sees."""
        others = [each for each in self.others if not is_same_model(each, self.spec)]
        return target.sources({each.text: load(each, self.settings, self.classes).loaded for each in others})


def _open_evaluated(evaluated: EvaluatedModel, name: str, place: Place) -> Opened[FoundGroup]:
    """An attack on a model that is loaded anew."""
    settings = replace(evaluated.settings, devices=[place.device])
    named = load(evaluated.spec, settings, evaluated.classes)
    target = evaluated.target(named, place.device)
    facts_of_others = partial(facts_of_models, evaluated.others, settings, evaluated.classes)
    search = evaluated.search(name, named, target, facts_of_others)
    return Opened(worker=search, made_from=search.attacking.made_from(search.attacking.first_images()))


def facts_of_models(others: Sequence[Spec], settings: Settings, classes: ClassTable) -> dict[str, list[str]]:
    """The digest of the weights and the identity of each of some models, by name."""
    loaded = (load(each, settings, classes) for each in others)
    return {each.name: [each.loaded.weights_sha256, each.identity] for each in loaded}


def _anew(spec: Spec, settings: Settings, classes: ClassTable) -> LoadedModel:
    return load(spec, settings, classes).loaded
