"""What the attack guess knows: a model's stored predictions, and how to make the images that they are of again."""

from functools import cache, lru_cache

import pandas as pd

from cleanset.images.base import Resized
from cleanset.studies.attacks.base import Pixels
from cleanset.studies.attacks.guess import GUESSED, Guess, most_confident_mistakes
from cleanset.studies.attacks.stages.attack_targets import Target
from cleanset.studies.robustness.answers import PREDICTIONS
from cleanset.studies.robustness.changed_images import ChangedImages, ChangeName
from cleanset.studies.robustness.families import Sources, change_plan, family_named
from cleanset.studies.robustness.names import CLEAN, UNCHANGED
from cleanset.studies.robustness.settings import StudyParams
from cleanset.studies.robustness.study import Study
from cleanset.tables import read_table


def guess_of(study: Study, wanted: StudyParams, target: Target) -> Guess:
    """The attack that knows the stored predictions."""
    corruptions, scenarios = (
        read_table(study.predictions(family, target.name), PREDICTIONS[family]) for family in GUESSED
    )
    mistakes = most_confident_mistakes(target.images, pd.concat((corruptions, scenarios.assign(severity=0))))
    whole = Resized(target.model.preprocessing.size)

    @cache
    def changed(family: str) -> ChangedImages:
        return change_plan(family_named(family), Sources.read(study), wanted).changed_images(target.files, wanted)

    @lru_cache(maxsize=16)  # the images of a class, which follow each other, share a mistake
    def pixels(file: str, name: str, severity: int) -> Pixels:
        if name == CLEAN:
            return target.pixels(file)
        # of all families the unchanged images are the same; severities begin with 1
        family = "corruptions" if severity or name == UNCHANGED else "scenarios"
        return whole(changed(family)(str(ChangeName(file, name, severity))))

    return Guess(mistakes, pixels)
