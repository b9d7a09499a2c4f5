"""Images of a study for tests: drawn, and without masks."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from cleanset.classes import imagenet
from cleanset.evaluation.sets import ImageFile
from cleanset.plumbing.files import sha256
from cleanset.studies.robustness.images import STUDY_IMAGES, Sources, Study
from tests.studies.robustness.drawn import drawn


def sources_of(folder: Path, classes: Sequence[int] = (1, 2), prefix: str = "", shift: int = 0) -> Sources:
    """The images 1, 2, … of these classes, of 224 x 224 pixels."""
    files, rows = {}, []
    folder.mkdir(exist_ok=True)
    for number, class_index in enumerate(classes, 1):
        path = folder / f"{prefix}{number}.png"
        Image.fromarray(np.roll(drawn(), number + shift, axis=1)).save(path)
        file = files[path.name] = ImageFile(path, sha256(path.read_bytes()), f"ILSVRC2012_val_{number:08}")
        rows.append((path.name, file.image_id, class_index, None, file.sha256, ["one"]))
    images = pd.DataFrame(rows, columns=STUDY_IMAGES.names)
    return Sources(
        images=images,
        masks=pd.DataFrame({"file": images["file"], "left_out": "no_mask"}),
        files=files,
        study=Study(folder),
        classes=imagenet(),
    )
