"""Images of a study for tests: drawn, and without masks."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from cleanset.classes import imagenet
from cleanset.edition.params import Score
from cleanset.evaluation.sets import EvaluationSet, ImageFile, SetImages
from cleanset.plumbing.files import sha256
from cleanset.studies.robustness.families import OpenedStudy, StudyParams
from cleanset.studies.robustness.images import MASKS, STUDY_IMAGES, Sources, Study, files_of
from cleanset.tables import read_table
from tests.studies.robustness.drawn import drawn


def stored_sources(study: Study) -> Sources:
    """The sources of a study of ImageNet's classes, as its stage images found them."""
    images = read_table(study.images, STUDY_IMAGES, imagenet())
    return Sources(
        images=images,
        masks=read_table(study.masks_table, MASKS, imagenet()),
        files=files_of(study.edition, images),
        classes=imagenet(),
        study=study,
        edition=study.edition,
    )


def opened_of(sources: Sources, params: StudyParams, *names: str, **images: Any) -> OpenedStudy:
    """A study of some models, whose files have their names, on drawn images; `images`: fields of their set."""
    found = EvaluationSet(
        name="drawn",
        kind="exports",
        items=[],
        read=SetImages(sources.files),
        checked=None,
        classes=sources.classes,
        **{"owners": names[:1], "selections": ["union"], **images},
    )
    opened = OpenedStudy(
        stems={name: name for name in names},
        specs={},
        score=Score(),
        classes=sources.classes,
        open_images=lambda: found,
        params=params,
        out=sources.study.folder / "data",
        folder=sources.study.folder,
    )
    # cached: the images need not be those of a finished set
    vars(opened)["sources"] = sources
    return opened


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
