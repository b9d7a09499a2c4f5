"""The judge: the verdict on each candidate by its file, from the model's float64 logits and the distances.

Whoever has the file, a PNG, gets the same verdict on any machine, whatever the search was computed in. The distances
are measured in `candidate_files`, LPIPS in `lpips_distance`.
"""

from typing import Any

import numpy as np
import torch

from cleanset.edition.params import Precision
from cleanset.images.preprocessing import PixelPlanes
from cleanset.scoring.differentiable import PixelNetwork
from cleanset.scoring.gate import not_finite
from cleanset.scoring.models import LoadedModel
from cleanset.scoring.scorer import arithmetic
from cleanset.statistics.basics import Floats
from cleanset.studies.attacks.base import Ball, Result, Subject, globally_seeded, to_unit
from cleanset.studies.attacks.candidate_files import Begun, Unwritten
from cleanset.studies.attacks.lpips_distance import Lpips

ImageLogits = Floats
"""The logits of one image, of shape (classes,)."""


CPU = torch.device("cpu")


class Judge:
    """The float64 logits of images by one model, of each alone.

    So the logits of an image do not depend on the others, bit for bit. A random model draws on the CPU, from the
    beginning of a seed for each image: so they are the same on any machine and whenever they are asked for. A custom
    random model has draws of its own; the global generators of torch and numpy begin at the same seed. `lpips`: None
    for leaving LPIPS out. `precision`: another than float64 for a network that does not run in it.
    """

    def __init__(
        self,
        model: LoadedModel,
        device: torch.device,
        lpips: Lpips | None = None,
        precision: Precision = "float64",
    ) -> None:
        self._network = PixelNetwork(model.network, device, precision)
        self.lpips = lpips
        self.precision = precision

    def logits(self, image: PixelPlanes, seed: int = 0) -> ImageLogits:
        """The logits of an image; `seed` is for a random model. Raises CleansetError if one is not finite."""
        network = self._network
        with arithmetic(network.precision), torch.inference_mode(), globally_seeded(seed, network.device):
            # on the CPU: each GPU draws other numbers
            network.reseed(seed, CPU)
            found = np.asarray(network(to_unit([image], network))[0].double().cpu().numpy())
        if not np.isfinite(found).all():
            raise not_finite("an attacked image")
        return found

    def verdict(
        self,
        subject: Subject,
        result: Result,
        before: ImageLogits,
        file: Begun,
        seed: int = 0,
    ) -> dict[str, Any]:
        """The verdict on a candidate, by the PNG that holds it, as columns of SHARD; logits are in float64.

        `before` are the logits of the image; `file` is the candidate's, which may be made meanwhile; `seed` is for a
        random model. Raises CleansetError as `candidate_file` does.
        """
        after = self.logits(result.candidate, seed)
        lpips = None if self.lpips is None else self.lpips(subject.pixels, result.candidate)
        written = file()
        return {
            "content": written.png,
            "png_sha256": written.sha256,
            "seed": result.seed,
            "queries": result.queries,
            "logits_before": before,
            "logits_after": after,
            "was_correct": int(before.argmax()) == subject.class_index,
            "is_error": int(after.argmax()) != subject.class_index,
            **written.distances,
            "lpips": lpips,
            "from_center": written.from_center,
            "notices": list(result.notices),
            "broken_at": result.broken_at,
            "is_converged": result.is_converged,
        }


def unwritten(subject: Subject, result: Result, ball: Ball | None) -> Unwritten:
    """A candidate for an image, found by an attack in a ball around the image or another center."""
    center = subject.pixels if result.center is None else result.center
    return Unwritten(name=subject.name, image=subject.pixels, candidate=result.candidate, center=center, ball=ball)
