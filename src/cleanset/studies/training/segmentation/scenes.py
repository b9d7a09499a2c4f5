"""Examples in the scenarios of XIMAGENET-12, at their own size, with the label map that then holds."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cleanset.errors import CleansetError
from cleanset.statistics.seeds import image_seed
from cleanset.studies.robustness.scenarios.changes import PLACING, Placing, scenario_image
from cleanset.studies.robustness.scenarios.params import GENERATED, RANDOM, ScenarioDefinition
from cleanset.studies.training.images import generated_file, read_image
from cleanset.studies.training.params import ORIGINAL
from cleanset.studies.training.segmentation.label_maps import (
    BACKGROUND,
    Example,
    Labels,
    Pixels,
    regions_of_labels,
)


@dataclass(frozen=True, slots=True)
class Scenes:
    """Everything that scenarios need besides an image and its mask: the arguments of `scenario_image`.

    `generated`: a folder with the generated images, named like the training images, each of its image's size.
    """

    seed: int = 0
    definition: ScenarioDefinition = "as_written"
    matte: str = "black"
    placing: Placing = PLACING
    photographs: Sequence[Pixels] = ()
    generated: Path | None = None

    def __call__(self, example: Example, file: str, name: str) -> Example:
        """The example in a scenario; `file` is the image's path below its folder.

        Raises CleansetError as `scenario_image` does, and for a generated image that is missing or of another size.
        """
        if name == ORIGINAL:
            return example
        generated = self._generated(example, file) if name == GENERATED else None
        image = self._changed(example.image, example.labels, file, name, self.photographs, generated)
        return Example(image, self._moved(example.labels, file) if name == RANDOM else example.labels)

    def _changed(
        self,
        image: Pixels,
        labels: Labels,
        file: str,
        name: str,
        photographs: Sequence[Pixels],
        generated: Pixels | None = None,
    ) -> Pixels:
        return scenario_image(
            image,
            regions_of_labels(labels),
            name,
            image_seed(self.seed, file),
            definition=self.definition,
            matte=self.matte,
            photographs=photographs,
            placing=self.placing,
            generated=generated,
        )

    def _moved(self, labels: Labels, file: str) -> Labels:
        """The label map that goes with random_background: each label painted white, on black photographs."""
        black = [np.zeros_like(each) for each in self.photographs]
        # as_coded the object is scaled on black, so that its edge is soft: a pixel that is half object belongs to it
        least = 127 if self.definition == "as_coded" else 0
        found, strongest = np.full_like(labels, BACKGROUND), np.full_like(labels, least)
        for label in np.unique(labels[labels != BACKGROUND]).tolist():
            painted = np.where(labels == label, np.uint8(255), np.uint8(0))[..., np.newaxis].repeat(3, axis=2)
            # the same seed draws the same photograph, place and scale
            shown = self._changed(painted, labels, file, RANDOM, black)[..., 0]
            found[shown > strongest] = label
            strongest = np.maximum(shown, strongest)
        return found

    def _generated(self, example: Example, file: str) -> Pixels:
        if self.generated is None:
            raise CleansetError(
                f"{GENERATED}: no folder of generated images; expected one in data.generated: name it, or leave the "
                "scenario out"
            )
        path = generated_file(self.generated, file)
        pixels: Pixels = np.asarray(read_image(path).convert("RGB"))
        if pixels.shape != example.image.shape:
            height, width = example.image.shape[:2]
            raise CleansetError(
                f"{path}: {pixels.shape[1]} x {pixels.shape[0]} pixels for an image of {width} x {height}; expected "
                "the image's size: make it again"
            )
        return pixels
