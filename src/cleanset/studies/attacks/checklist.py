"""The checklist of N. Carlini et al., "On Evaluating Adversarial Robustness" (2019), section 5, for a run of attacks.

Each point is answered by what the run measured or by its settings: seen, with the numbers that show it; not seen; or
undecided, because too little was broken to tell, or because no run knows it, with what is known of it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from cleanset.evaluation.measures import Measure
from cleanset.plumbing.validation import join_names
from cleanset.statistics.formats import percent
from cleanset.studies.attacks.autoattack import AutoAttackAttack
from cleanset.studies.attacks.base import Parameters
from cleanset.studies.attacks.baselines import WHOLE_CUBE, Baselines
from cleanset.studies.attacks.custom import CustomAttack
from cleanset.studies.attacks.gradient_attacks import PgdAttack
from cleanset.studies.attacks.signs import SeenSign
from cleanset.studies.attacks.study import AttackParams
from cleanset.studies.attacks.warnings import WarningRecord

State = Literal["seen", "not seen", "undecided", "does not apply"]

MIN_CONVERGED = 0.95
"""Smallest share of the images whose search more steps no longer changed, for an attack that has converged."""

MIN_NOISE_POINTS = 10_000
"""The random points for each image that the checklist asks for."""


@dataclass(frozen=True, slots=True)
class Point:
    """A point of the checklist, as a run answers it for a model."""

    group: str
    """The section of the checklist."""

    text: str
    """What is asked for."""

    state: State
    why: str


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """All that a run knows of the attacks on a model."""

    params: AttackParams
    model: str
    measures: Mapping[tuple[str, str, str], Measure]
    """By attack or threat model, model and measure."""

    record: WarningRecord | None
    """The warnings; None if they were not looked for."""

    models: Sequence[str]
    """All models of the run."""

    straight_through: Sequence[str] = ()
    """Steps of the network that gradients pass straight through."""

    @property
    def attacks(self) -> list[str]:
        """The names of the attacks that ran and change images."""
        return [
            name
            for name, each in self.params.attacks.items()
            if each.changes_images and self.measure(name, "error") is not None
        ]

    @property
    def threats(self) -> list[str]:
        """The names of the threat models with a measure."""
        return [each.name for each in self.params.threats if self.measure(each.name, "robust_high") is not None]

    @property
    def baselines(self) -> Baselines | None:
        """What the probe found in growing balls and by noise."""
        return None if self.record is None else self.record.baselines

    def measure(self, name: str, measure: str) -> Measure | None:
        """A measure, if it has a value."""
        found = self.measures.get((name, self.model, measure))
        return found if found is not None and found.is_defined else None

    def names(self, wanted: Callable[[Parameters], bool]) -> list[str]:
        """The names of some of the attacks."""
        return [name for name in self.attacks if wanted(self.params.attacks[name])]

    def seen(self, *signs: str) -> list[SeenSign]:
        """The signs of these that were seen."""
        return [] if self.record is None else [each for each in self.record.warnings if each.sign in signs]

    def without(self, *signs: str) -> tuple[State, str]:
        """ "seen" if all of the signs were looked for and none was found."""
        if self.record is None:
            return "undecided", "signs of gradient masking were not looked for"
        if seen := self.seen(*signs):
            return "not seen", "; ".join(each.text for each in seen)
        if unclear := [each for each in self.record.not_told if each.sign in signs]:
            return "undecided", unclear[0].text
        return "seen", f"no sign against it on {self.record.images} images"

    def is_more(self, larger: int, smaller: int, text: str, *signs: str) -> tuple[State, str]:
        """Seen where a number is larger than another, too, as `text` says; without a difference it is undecided."""
        state, why = self.without(*signs)
        if state != "seen":
            return state, f"{text}: {why}"
        return "seen" if larger > smaller else "not seen" if larger < smaller else "undecided", text


Answer = Callable[[Evidence], tuple[State, str]]


def _threat_model(of: Evidence) -> tuple[State, str]:
    if not of.threats:
        return "not seen", "no attack has a threat model"
    known = "its weights" if any(of.params.attack(name).uses == "gradients" for name in of.attacks) else "its answers"
    return "seen", f"{join_names(of.threats)}; any other class is a success; attackers know the model by {known}"


def _with_draws(of: Evidence) -> list[str]:
    """The attacks that follow the mean of several answers of a random model."""
    return [name for name in of.attacks if getattr(of.params.attacks[name], "draws", 1) > 1]


def _listed(found: Mapping[str, Sequence[str]]) -> str:
    """The names of attacks by kind, in words."""
    return "; ".join(f"{what}: {join_names(names) if names else 'none'}" for what, names in found.items())


def _adaptive(of: Evidence) -> tuple[State, str]:
    draws = _with_draws(of)
    found = [f"gradients pass straight through {each}" for each in of.straight_through]
    found += [f"{name} follows the mean of several answers" for name in draws]
    if found:
        return "seen", "; ".join(found)
    if own := of.names(lambda attack: isinstance(attack, CustomAttack)):
        return "undecided", f"{join_names(own)}: code of yours; say whether it is written for this model"
    return "not seen", "all attacks are general ones: none is written for this model (--straight-through, draws)"


def _released(of: Evidence) -> tuple[State, str]:
    return "undecided", f"whether {of.model} is published is not known; records have the digest of its weights"


def _clean(of: Evidence) -> tuple[State, str]:
    found = [each for name in of.params.attacks if (each := of.measure(name, "clean_error")) is not None]
    if not found:
        return "not seen", "not measured"
    most = max(found, key=lambda each: each.images)
    return "seen", f"{percent(1 - most.value, 1)} of {most.images:,} images"


def _iterative(of: Evidence) -> tuple[State, str]:
    found = of.baselines
    if found is None:
        return "undecided", of.without("fewer_steps_better")[1]
    steps = [each for each in found.by_search if each.search.startswith("pgd of")]
    text = f"of {found.images} images, {join_names([f'{each.search} breaks {each.broken}' for each in steps])}"
    return of.is_more(steps[0].broken, steps[-1].broken, text, "fewer_steps_better")


def _larger_balls(of: Evidence) -> tuple[State, str]:
    found = of.baselines
    if found is None:
        return "undecided", of.without("smaller_ball_better")[1]
    # the whole cube is another point
    inside = [each.broken for each in found.by_radius if each.eps < WHOLE_CUBE] or [0]
    return of.is_more(inside[-1], inside[0], found.texts()[0], "smaller_ball_better", "larger_balls_alike")


def _own_attacks(of: Evidence) -> tuple[State, str]:
    found = of.baselines
    signs = ("black_box_better", "transfer_beats_gradient", "noise_better")
    if found is None:
        return "undecided", of.without(*signs)[1]
    first = found.by_search[0]
    others = [each for each in found.by_search if not each.search.startswith("pgd ")]
    text = join_names([f"{each.search} breaks {each.broken}" for each in (first, *others)])
    return of.is_more(first.broken, max(each.broken for each in others), f"of {found.images} images, {text}", *signs)


def _large_balls(of: Evidence) -> tuple[State, str]:
    found = of.baselines
    if found is None:
        return "undecided", of.without("whole_cube_withstood")[1]
    last = found.by_radius[-1]
    return (
        "seen" if last.broken == found.images else "not seen",
        f"PGD breaks {last.broken} of {found.images} correctly classified images where every pixel is free",
    )


def _curve(of: Evidence) -> tuple[State, str]:
    found = of.baselines
    return ("not seen", "no growing balls were searched") if found is None else ("seen", found.texts()[0])


def _described(of: Evidence) -> tuple[State, str]:
    if not of.attacks:
        return "not seen", "no attack ran"
    return "seen", f"all parameters of {join_names(of.attacks)} are in the results"


def _diverse(of: Evidence) -> tuple[State, str]:
    used = dict.fromkeys(of.params.attacks[name].uses for name in of.attacks)
    text = f"{len(of.attacks)} attacks follow {join_names(used)}" if used else "no attack ran"
    return "seen" if len(used) > 1 else "not seen", text


def _gradient_free(of: Evidence) -> tuple[State, str]:
    found = {
        "gradient-free": of.names(lambda attack: attack.uses == "logits")
        or (["spsa of the probe"] if of.baselines is not None else []),
        "hard-label": of.names(lambda attack: attack.uses == "classes" and attack.family == "nearest"),
    }
    return "seen" if all(found.values()) else "not seen", _listed(found)


def _transfer(of: Evidence) -> tuple[State, str]:
    if names := of.names(lambda attack: attack.reads_other_models):
        return "seen", f"{join_names(names)}; how similar the other models are is yours to judge"
    return of.without("transfer_beats_gradient")


def _ensembled(of: Evidence) -> tuple[State, str]:
    if not of.seen("random_answers"):
        state, why = of.without("random_answers")
        return ("does not apply", f"answers are not random: {why}") if state == "seen" else (state, why)
    draws = _with_draws(of)
    return (
        ("seen", f"{join_names(draws)}, by draws") if draws else ("not seen", "answers are random; no attack has draws")
    )


def _differentiable(of: Evidence) -> tuple[State, str]:
    if of.straight_through:
        return "seen", f"gradients pass straight through {join_names(of.straight_through)}"
    state, why = of.without("no_gradient", "misleading_gradient", "saturated_answers")
    return ("does not apply", f"a useful gradient: {why}") if state == "seen" else (state, why)


def _converged(of: Evidence) -> tuple[State, str]:
    found = {name: each for name in of.attacks if (each := of.measure(name, "converged")) is not None}
    if not found:
        return "undecided", "no attack reports whether it has converged"
    text = ", ".join(f"{name} on {percent(each.value, 1)} of {each.images} images" for name, each in found.items())
    idle = [name for name in found if (success := of.measure(name, "success")) is None or not success.value]
    if idle:
        # a search that leads nowhere stops, too
        return "undecided", f"{text}; {join_names(idle)} breaks no image"
    return "seen" if all(each.value >= MIN_CONVERGED for each in found.values()) else "not seen", text


def _random_offset(of: Evidence) -> tuple[State, str]:
    pgd = {name: each for name in of.attacks if isinstance(each := of.params.attacks[name], PgdAttack)}
    texts = [
        f"{name}: {'random starts' if each.random_start else 'from the image itself'}, losses {join_names(each.losses)}"
        for name, each in pgd.items()
    ]
    is_met = any(each.random_start for each in pgd.values())
    return "seen" if is_met else "not seen", "; ".join(texts) or "no PGD ran"


def _prior_work(of: Evidence) -> tuple[State, str]:
    others = [model for model in of.models if model != of.model]
    beside = f"attacked with it: {join_names(others)}" if others else "no other model was attacked with it"
    return "undecided", beside


def _broader(of: Evidence) -> tuple[State, str]:
    found = {
        "rotations": of.names(lambda attack: attack.family == "rotations"),
        "corruptions": of.names(lambda attack: attack.family == "corruptions"),
    }
    return "seen" if all(found.values()) else "not seen", _listed(found)


def _provable(of: Evidence) -> tuple[State, str]:
    return "not seen", "no attack proves a lower bound: robust accuracies are bounds from above"


def _noise(of: Evidence) -> tuple[State, str]:
    found = of.baselines
    if found is None:
        return "not seen", "no random points were tried"
    state, why = of.without("noise_better")
    text = found.texts()[1] + (f"; {why}" if state != "seen" else "")
    if found.noise_points < MIN_NOISE_POINTS:
        return "not seen", f"{text}; the checklist asks for {MIN_NOISE_POINTS:,} points"
    return state, text


def _targeted(of: Evidence) -> tuple[State, str]:
    parts = {
        name: [part for part in each.attacks if part.endswith("-t")]
        for name in of.attacks
        if isinstance(each := of.params.attacks[name], AutoAttackAttack)
    }
    found = [f"{name}: {join_names(listed)}" for name, listed in parts.items() if listed]
    return ("seen", "; ".join(found)) if found else ("not seen", "all attacks are untargeted")


def _of_each_image(of: Evidence) -> tuple[State, str]:
    if not of.threats:
        return "not seen", "no attack has a threat model"
    return "seen", f"an image counts as robust in {join_names(of.threats)} if no attack there breaks it"


SEVERE = "Common severe flaws"
COMMON = "Common pitfalls"
SPECIAL = "Special-case pitfalls"
POINTS: tuple[tuple[str, str, Answer], ...] = (
    (SEVERE, "State a precise threat model", _threat_model),
    (SEVERE, "Perform adaptive attacks", _adaptive),
    (SEVERE, "Release models and source code", _released),
    (SEVERE, "Report clean accuracy", _clean),
    (SEVERE, "Iterative attacks perform better than single-step ones", _iterative),
    (SEVERE, "A larger perturbation budget increases success", _larger_balls),
    (SEVERE, "With high distortion nothing withstands", _large_balls),
    (SEVERE, "Show success over the perturbation budget", _curve),
    (
        SEVERE,
        "Attacks on the model itself perform better than any other",
        _own_attacks,
    ),
    (SEVERE, "Describe the attacks with all hyperparameters", _described),
    (COMMON, "Apply a diverse set of attacks", _diverse),
    (COMMON, "Try a gradient-free and a hard-label attack", _gradient_free),
    (COMMON, "Perform a transferability attack", _transfer),
    (COMMON, "Ensemble over randomness", _ensembled),
    (COMMON, "Apply differentiable techniques to non-differentiable components", _differentiable),
    (COMMON, "Verify that the attacks have converged", _converged),
    (COMMON, "Start at a random offset, and investigate hyperparameters", _random_offset),
    (COMMON, "Compare against prior work", _prior_work),
    (COMMON, "Test broader threat models", _broader),
    (SPECIAL, "Investigate provable approaches", _provable),
    (SPECIAL, "Attack with random noise", _noise),
    (SPECIAL, "Use both targeted and untargeted attacks", _targeted),
    (SPECIAL, "Perform ablation studies", _prior_work),
    (SPECIAL, "Report success image by image", _of_each_image),
)
"""The points, without those on new attacks and on other domains than images."""


def checklist(evidence: Evidence) -> list[Point]:
    """The points, as a run answers them for a model."""
    found = []
    for group, text, answer in POINTS:
        state, why = answer(evidence)
        found.append(Point(group=group, text=text, state=state, why=why))
    return found
