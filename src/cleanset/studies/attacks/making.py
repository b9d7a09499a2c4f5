"""From parameters to attacks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cleanset.errors import CleansetError
from cleanset.studies.attacks import params
from cleanset.studies.attacks.autoattack import AutoAttack
from cleanset.studies.attacks.base import Attack
from cleanset.studies.attacks.boundary import Boundary, Other
from cleanset.studies.attacks.common_corruptions import PUBLISHED, CommonCorruptions
from cleanset.studies.attacks.guess import Guess
from cleanset.studies.attacks.null import Null
from cleanset.studies.attacks.pgd import Pgd
from cleanset.studies.attacks.spatial import RandomSpatial, SpatialGrid
from cleanset.studies.attacks.spsa import Spsa, Start
from cleanset.studies.robustness.names import ALL_CORRUPTIONS


@dataclass(frozen=True, slots=True)
class Known:
    """What attacks may use beside the network: the study's seed, images that the model gets right, known mistakes.

    `others` and `guess` are called by the attacks that need them only.
    """

    seed: int
    others: Callable[[], Mapping[str, Other]]
    guess: Callable[[], Guess]


def made(wanted: params.AnyAttack, known: Known) -> Attack:
    """The attack with these parameters. Raises CleansetError for a start that is none."""
    match wanted:
        case params.NoAttack():
            return Null()
        case params.SpatialGridAttack():
            return SpatialGrid(wanted.scale, tuple(wanted.translations), tuple(wanted.angles))
        case params.RandomSpatialAttack():
            return random_spatial(wanted, known.seed)
        case params.CommonCorruptionsAttack():
            names = PUBLISHED if wanted.corruptions == len(PUBLISHED) else ALL_CORRUPTIONS
            return CommonCorruptions(names, known.seed, wanted.severity)
        case params.GuessAttack():
            return known.guess()
        case params.PgdAttack():
            step = wanted.eps / 4 if wanted.step is None else wanted.step
            return Pgd(wanted.norm, wanted.eps, wanted.steps, step, wanted.random_start, known.seed, wanted.group)
        case params.AutoAttackAttack():
            return AutoAttack(
                wanted.norm, wanted.eps, tuple(wanted.attacks), wanted.steps, wanted.square_queries, known.seed,
                wanted.group,
            )  # fmt: skip
        case params.SpsaAttack():
            return Spsa(
                wanted.eps, wanted.steps, wanted.samples, wanted.learning_rate, wanted.delta, wanted.stop_margin,
                known.seed, _start(wanted.after, known.seed),
            )  # fmt: skip
    others = chosen_others(wanted.starts, known.others())
    return Boundary(wanted.eps, wanted.steps, known.seed, wanted.group, others, _start(wanted.after, known.seed))


def random_spatial(wanted: params.RandomSpatialAttack, seed: int) -> RandomSpatial:
    """The attack that draws one change."""
    return RandomSpatial(wanted.scale, wanted.max_translation, wanted.max_angle, seed)


def _start(after: params.RandomSpatialAttack | None, seed: int) -> Start | None:
    return None if after is None else random_spatial(after, seed).changed


def chosen_others(starts: list[str] | None, others: Mapping[str, Other]) -> Mapping[str, Other]:
    """Those of the others that are named; all without names. Raises CleansetError for a name that is none of them."""
    if starts is None:
        return others
    for name in starts:
        if name not in others:
            raise CleansetError(
                f"attack starts: {name} is no image of the study that the model classifies correctly; "
                f"expected one of its {len(others)}: correct the name"
            )
    return {name: others[name] for name in starts}
