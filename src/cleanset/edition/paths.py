"""The files of an edition: the path of everything that a stage reads or writes, and its images.

Options that several commands share.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cleanset.files import remove_abandoned

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

    @property
    def params_yaml(self) -> Path:
        return self.folder / "params.yaml"

    @property
    def dvc_yaml(self) -> Path:
        return self.folder / "dvc.yaml"

    @property
    def raw_md5(self) -> Path:
        return self.folder / "raw.md5"

    @property
    def tables_md5(self) -> Path:
        """The MD5 of the tables that the metrics were computed from."""
        return self.folder / "tables.md5"

    @property
    def reviews(self) -> Path:
        return self.folder / "reviews"

    @property
    def published_lists(self) -> Path:
        """The Top-5 lists of source 000's models."""
        return self.folder / "published" / "top5.csv"

    @property
    def metrics(self) -> Path:
        return self.folder / "metrics"

    @property
    def report(self) -> Path:
        return self.folder / "report"

    @property
    def index(self) -> Path:
        return self.folder / "data" / "index.parquet"

    @property
    def locations(self) -> Path:
        return self.folder / "data" / "locations.parquet"

    @property
    def shared(self) -> Path:
        return self.folder / "data" / "shared.parquet"

    @property
    def crops(self) -> Path:
        """Every crop that a reviewer has drawn."""
        return self.folder / "data" / "crops.parquet"

    @property
    def short_classes(self) -> Path:
        return self.folder / "data" / "short_classes.csv"

    def scores(self, role: str) -> Path:
        return self.folder / "data" / "scores" / f"{role}.parquet"

    def scored_with(self, role: str) -> Path:
        """The record of the scores: model, preprocessing, SHA-256 of the weights."""
        return self.folder / "data" / "scores" / f"{role}.json"

    def partial_scores(self, role: str) -> Path:
        return self.folder / "data" / "scores" / f"{role}.partial-shards"

    def candidates(self, role: str) -> Path:
        return self.folder / "data" / "candidates" / f"{role}.parquet"

    def margins(self, role: str) -> Path:
        return self.folder / "data" / "margins" / f"{role}.parquet"

    def crop_scores(self, role: str) -> Path:
        return self.folder / "data" / "crop_scores" / f"{role}.parquet"

    def votes(self, role: str) -> Path:
        """The votes that decided the model's set."""
        return self.folder / "data" / "votes" / f"{role}.parquet"

    def selection(self, role: str) -> Path:
        return self.folder / "data" / "selection" / f"{role}.parquet"

    def rejected(self, role: str) -> Path:
        return self.folder / "data" / "rejected" / f"{role}.parquet"

    def audit(self, role: str) -> Path:
        """The result of the audit of the model's set; null without one."""
        return self.folder / "data" / "audit" / f"{role}.json"

    def export(self, role: str) -> Path:
        return self.folder / "data" / "export" / role


def verified_images(edition: Edition, images: str, index: "pd.DataFrame") -> "VerifiedImages":
    """The images of an edition that its index lists; `images` is dataset.images of its params."""
    from cleanset.dataset.archives import VerifiedImages  # needs pandas, which a set's users may lack

    return VerifiedImages(edition.path(images), edition.locations, index)


def images_are_official(edition: Edition, images: str) -> bool:
    """Whether the images of an edition are those of the official archive; `images` is dataset.images of its params.

    The archive itself need not be there, raw.md5 must.
    """
    from cleanset.dataset.archives import are_official, read_md5_list

    if not edition.raw_md5.is_file() or edition.path(images).is_dir():
        return False
    return are_official(images, read_md5_list(edition.raw_md5))


def without_abandoned(edition: Edition) -> Edition:
    """The edition, after removing the temporary files of killed runs."""
    data = edition.index.parent
    for folder in (edition.folder, data, *(path for path in data.glob("*") if path.is_dir())):
        remove_abandoned(folder)
    return edition


Folder = Annotated[Path, typer.Option("--edition", help="Folder with params.yaml.", show_default="this folder")]
StudyFolder = Annotated[Path, typer.Option("--study", help="Folder of the study.", show_default="the current one")]
HERE = Path()

Host = Annotated[str, typer.Option(help="Address to listen on; others need the printed token.")]
LOOPBACK = "127.0.0.1"
Port = Annotated[
    int | None,
    typer.Option(min=0, max=65535, help="0: any free port. Without it: a fixed one for this folder and name."),
]
Browser = Annotated[bool, typer.Option(help="Open the page in the browser.")]
