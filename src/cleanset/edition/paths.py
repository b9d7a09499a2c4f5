"""The paths of an edition's files: everything that a stage reads or writes, and its images."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cleanset.classes import ClassTable, imagenet, parse_class_table
from cleanset.plumbing.files import PathBelow, PathOfName, is_there, partial_shards, read_text, remove_abandoned

if TYPE_CHECKING:
    import pandas as pd

    from cleanset.dataset.archives import VerifiedImages


@dataclass(frozen=True, slots=True)
class Edition:
    """The paths of the edition in `folder`."""

    folder: Path

    def path(self, relative: str) -> Path:
        """A path that params.yaml names."""
        return self.folder / relative

    def read_classes(self) -> ClassTable:
        """The class table of the images: ImageNet's, or the one that stage preprocess wrote for your own."""
        if not is_there(self.classes):
            return imagenet()
        return parse_class_table(read_text(self.classes, "run dvc repro"), str(self.classes))

    params_yaml = PathBelow("params.yaml")
    dvc_yaml = PathBelow("dvc.yaml")
    raw_md5 = PathBelow("raw.md5")
    images_sha256 = PathBelow("images.sha256")
    """The SHA-256 of your own images."""

    tables_md5 = PathBelow("tables.md5")
    """The MD5 of the tables that the metrics were computed from."""

    reviews = PathBelow("reviews")
    published_lists = PathBelow("published/top5.csv")
    """The Top-5 lists of SCOOTER's models."""

    metrics = PathBelow("metrics")
    report = PathBelow("report")
    classes = PathBelow("data/classes.tsv")
    """The class table of images that are not ImageNet's."""

    index = PathBelow("data/index.parquet")
    locations = PathBelow("data/locations.parquet")
    shared = PathBelow("data/shared.parquet")
    crops = PathBelow("data/crops.parquet")
    """Every crop that a reviewer has drawn."""

    short_classes = PathBelow("data/short_classes.csv")
    scores = PathOfName("data/scores/{}.parquet")
    scored_with = PathOfName("data/scores/{}.json")
    """The record of the scores: model, preprocessing, SHA-256 of the weights."""

    candidates = PathOfName("data/candidates/{}.parquet")
    margins = PathOfName("data/margins/{}.parquet")
    crop_scores = PathOfName("data/crop_scores/{}.parquet")
    votes = PathOfName("data/votes/{}.parquet")
    """The votes that decided the model's set."""

    selection = PathOfName("data/selection/{}.parquet")
    rejected = PathOfName("data/rejected/{}.parquet")
    audit = PathOfName("data/audit/{}.json")
    """The result of the audit of the model's set; null without one."""

    export = PathOfName("data/export/{}")

    def partial_scores(self, role: str) -> Path:
        """The finished shards of scores that are being computed."""
        return partial_shards(self.scores(role).with_suffix(""))


def edition_of_set(folder: Path) -> Edition | None:
    """The edition whose data/export holds the folder of a set; None for any other folder."""
    above = folder.absolute().parents
    is_export = len(above) > 2 and (above[0].name, above[1].name) == ("export", "data")
    edition = Edition(above[2]) if is_export else None
    return edition if edition and edition.params_yaml.is_file() else None


def verified_images(edition: Edition, images: str, index: "pd.DataFrame", classes: ClassTable) -> "VerifiedImages":
    """The images of an edition that its index lists; `images` is dataset.images of its params."""
    from cleanset.dataset.archives import VerifiedImages  # needs pandas, which a set's users may lack

    return VerifiedImages(edition.path(images), edition.locations, index, classes)


def images_are_official(edition: Edition, images: str) -> bool:
    """Whether an edition has the images of the official archive; `images` is dataset.images of its params.

    The archive itself need not be there, raw.md5 must.
    """
    from cleanset.dataset.archives import are_official, read_md5_list

    # images in a folder are checked one by one, and under the MD5 of no archive
    if not is_there(edition.raw_md5) or edition.path(images).is_dir():
        return False
    return are_official(images, read_md5_list(edition.raw_md5))


def without_abandoned(edition: Edition) -> Edition:
    """The edition, after removing the temporary files of killed runs."""
    data = edition.index.parent
    for folder in (edition.folder, data, *(path for path in data.glob("*") if path.is_dir())):
        remove_abandoned(folder)
    return edition
