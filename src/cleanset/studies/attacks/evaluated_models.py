"""A model under attack, of a study or of any that a command names, as one record that other processes open again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from types import MappingProxyType

from cleanset.classes import ClassTable
from cleanset.edition.params import Engine, read_params
from cleanset.errors import CleansetError
from cleanset.evaluation.given_model import can_be_sent
from cleanset.evaluation.models import NamedModel, open_model
from cleanset.evaluation.request import given
from cleanset.evaluation.sets import EvaluationSet
from cleanset.evaluation.specs import CommandModel, Spec, WrappedNetwork, is_same_model
from cleanset.plumbing.files import sha256_of
from cleanset.plumbing.json_files import JsonMapping, JsonObject
from cleanset.scoring.computation import Opened, Place
from cleanset.scoring.devices import Device
from cleanset.scoring.differentiable import PixelNetwork
from cleanset.scoring.engine import Settings, settings_for
from cleanset.scoring.models import LoadedModel
from cleanset.scoring.scorer import ignore
from cleanset.studies.attacks.attacking import SEARCHING, Attacking, FoundGroup, OtherSearches, Search, writers_beside
from cleanset.studies.attacks.base import Known
from cleanset.studies.attacks.changes import GUESSED
from cleanset.studies.attacks.judge import Judge
from cleanset.studies.attacks.lpips_distance import lpips_of
from cleanset.studies.attacks.request import AttackRequest
from cleanset.studies.attacks.results import ATTACKED, NAMED_ATTACKED
from cleanset.studies.attacks.straight_through import with_straight_through
from cleanset.studies.attacks.study import AllParams, AttackedFolder, AttackStudy
from cleanset.studies.attacks.targets import Searching, Target, guess_of, scores_check
from cleanset.studies.robustness.families import OpenedStudy
from cleanset.studies.robustness.images import images_for

EVALUATING = (__name__, *SEARCHING)
"""Modules that a worker process of attacks imports."""


def facts_of_models(others: Sequence[Spec], settings: Settings, classes: ClassTable) -> dict[str, list[str]]:
    """The digest of the weights and the identity of each of some models, by name."""
    opened = (open_model(each, settings, classes) for each in others)
    return {each.name: [each.loaded.weights_sha256, each.identity] for each in opened}


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatedModel:
    """A model that is attacked; it can be sent to another process, which loads the model again."""

    name: str
    request: AttackRequest
    """Results of this model, perhaps among others."""
    settings: Settings
    """With the precision of the verdicts."""

    @classmethod
    def of_study(cls, study: AttackStudy, params: AllParams, name: str) -> "EvaluatedModel":
        """A model of a study.

        Raises CleansetError for a name that no model of the study has, and if no image is of a class of the model's
        groups.
        """
        request = AttackRequest(
            stems={name: name},
            specs={name: params.spec_of(name)},
            others=[params.spec_of(role) for role in other_roles(params, name)],
            score=params.edition.score,
            classes=params.classes,
            open_images=partial(given, _target_images(params, name)),
            params=params.attacks,
            out=study.data,
            folder=study.folder,
            engine=params.attacks.engine or params.edition.engine,
            is_study=True,
        )
        return cls(name=name, request=request, settings=replace(settings_for(request.score), precision="float64"))

    @property
    def spec(self) -> Spec:
        return self.request.specs[self.name]

    @property
    def study(self) -> AttackStudy | None:
        """The study to which it belongs: its stored scores are compared, its stored predictions read; None: no
        study."""
        return AttackStudy(self.request.folder) if self.request.is_study else None

    @property
    def classes(self) -> ClassTable:
        """The class table of the images."""
        return self.request.classes

    def open(self) -> NamedModel:
        """The model, loaded. Raises CleansetError if it cannot be."""
        return open_model(self.spec, self.settings, self.classes)

    def target(self, named: NamedModel, device: Device, *, is_measured: bool = True) -> Target:
        """The model under attack on a device; verdicts include the LPIPS of the params if it `is_measured`."""
        params = self.request.params
        lpips = lpips_of(self.request.folder, params, device.torch) if is_measured else None
        return Target(
            name=named.name,
            model=named.loaded,
            images=self.request.images.rows,
            files=self.request.images.files,
            classes=self.classes,
            judge=Judge(named.loaded, device.torch, lpips, self.settings.precision),
            how=Searching(device.torch, params.search_precision, self.settings.batch_size),
            seed=params.seed,
            wrapped=params.wrapped.get(self.name),
            groups=self.spec.groups if isinstance(self.spec, WrappedNetwork) else None,
            searched=with_straight_through(named.loaded.network, self.request.straight_through),
        )

    def search(
        self, name: str, named: NamedModel, target: Target, facts_of_others: Callable[[], JsonMapping]
    ) -> Search:
        """The worker of an attack in this process."""
        facts: JsonObject = {
            "identity": named.identity,
            "judged_in": self.settings.precision,
            "straight_through": [*self.request.straight_through],
        }
        attack = self.request.params.attack(name)
        if attack.reads_other_models:
            facts["made_on"] = facts_of_others()
        # loaded again for each attack: what a random source has drawn before must not count
        known = Known(self.request.params.seed, target.others, cache(partial(self.sources, target)))
        check: Callable[[Sequence[str]], None] = ignore
        study = self.study
        if study is not None:
            check = scores_check(study, read_params(study.edition.folder), target)
        if study is not None and attack.reads_predictions:
            robustness = study.robustness
            known = replace(known, guess=guess_of(OpenedStudy.read(robustness), target))
            predictions = {family: robustness.answers.predictions(family, target.name) for family in GUESSED}
            facts["predictions_sha256"] = {family: sha256_of(path) for family, path in predictions.items()}
        return Search(
            attacking=self.attacking(name, target, further=facts),
            known=known,
            check=check,
            writers=writers_beside(target.how.device),
        )

    def opened_search(self, name: str, device: Device) -> Search:
        """The worker of an attack on a model that is loaded again, in whatever process."""
        here = replace(self, settings=replace(self.settings, devices=[device]))
        named = here.open()
        return here.search(name, named, here.target(named, device), here.facts_of_others)

    def other_searches(self, name: str, engine: Engine = "local") -> OtherSearches:
        """The workers of an attack on all devices; a program decides itself how many cores it takes."""
        opening = None if isinstance(self.spec, CommandModel) else partial(_open_evaluated, self, name)
        if len(self.settings.devices) > 1 and not can_be_sent(opening):
            opening = None
        return OtherSearches(devices=self.settings.devices, open=opening, engine=engine)

    def attacking(self, name: str, target: Target, further: JsonMapping = MappingProxyType({})) -> Attacking:
        """An attack whose results are below the folder of the request."""
        table = ATTACKED if self.request.is_study else NAMED_ATTACKED
        return Attacking(self.request.params, name, target, self.results(name), further=further, table=table)

    def results(self, name: str) -> AttackedFolder:
        """The results of an attack, below the folder of the request."""
        return AttackedFolder(self.request.out / "attacks" / name / self.request.stems[self.name])

    def facts_of_others(self) -> JsonMapping:
        """What identifies the models that images are made on."""
        return facts_of_models(self.request.others, self.settings, self.classes)

    def sources(self, target: Target) -> dict[str, PixelNetwork]:
        """The other models as networks on the pixels that the model sees."""
        others = [each for each in self.request.others if not is_same_model(each, self.spec)]
        return target.sources(open_model(each, self.settings, self.classes) for each in others)

    def anew(self) -> Callable[[], LoadedModel]:
        """Loads the model again, in whatever process."""
        return partial(_anew, self.spec, self.settings, self.classes)


def other_roles(params: AllParams, name: str) -> list[str]:
    """The edition's models that images are made on for a model of a study."""
    return [role for role, model in params.edition.models.items() if role != name and not model.is_list]


def _target_images(params: AllParams, name: str) -> EvaluationSet:
    """The images that a model of a study may be attacked on.

    Raises CleansetError if none is of a class of the model's groups.
    """
    around = params.attacks.wrapped.get(name)
    role = name if around is None else around.model
    images = params.opened.images
    robustness = params.robustness
    seen = images_for(images.rows, robustness.images, role, robustness.classes_of(role, params.classes))
    groups = None if around is None else around.two_groups(params.classes)
    if groups is not None:
        of_a_group = [groups.group_of(index) is not None for index in seen["class_index"].tolist()]
        if not any(of_a_group):
            raise CleansetError(
                f"wrapped.{name}.groups: none of the study's {len(seen)} images is of one of their classes; "
                "expected at least one: name classes of the edition"
            )
        seen = seen[of_a_group]
    return images.only(set(seen["file"]))


def _open_evaluated(evaluated: EvaluatedModel, name: str, place: Place) -> Opened[FoundGroup]:
    """An attack on a model that is loaded again."""
    search = evaluated.opened_search(name, place.device)
    return Opened(worker=search, made_from=search.attacking.made_from(search.attacking.first_images()))


def _anew(spec: Spec, settings: Settings, classes: ClassTable) -> LoadedModel:
    return open_model(spec, settings, classes).loaded
