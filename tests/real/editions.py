"""Editions of the 2,000 real photographs."""

import json
import os
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from cleanset.plumbing.files import sha256
from tests.forked_commands import forking

SOURCE = Path(__file__).parents[2] / "src"
ROLES = ("standard", "norm_robust", "corruption_robust")
TAR, DEVKIT = "ILSVRC2012_img_val.tar", "ILSVRC2012_devkit_t12.tar.gz"
EVERY = range(2000)


def pinned(weights: Path) -> dict[str, str]:
    """The params of a model that name a local file."""
    return {"weights": str(weights), "sha256": sha256(weights.read_bytes())}


def make_edition(
    folder: Path, real: Path, models: Mapping[str, Mapping[str, str]], precision: str, taken: Sequence[int] = EVERY
) -> None:
    """An edition of those `taken`, by their places in the tar; an image that nobody has reviewed counts as clean."""
    subprocess.run(["cleanset", "edition", str(folder)], check=True)
    raw = folder / "data" / "raw"
    (raw / DEVKIT).symlink_to(real / DEVKIT)
    if taken == EVERY:
        (raw / TAR).symlink_to(real / TAR)
    else:
        with tarfile.open(real / TAR) as whole, tarfile.open(raw / TAR, "w") as part:
            members = whole.getmembers()
            for member in (members[place] for place in taken):
                part.addfile(member, whole.extractfile(member))
    params = yaml.safe_load((folder / "params.yaml").read_text())
    params["dataset"] |= {"expect_images": len(taken), "classes": wnids(real)}
    params["models"] = dict(models)
    params["score"] |= {"precision": precision, "batch_size": 8}
    params["review"]["unreviewed"] = "clean"
    (folder / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))
    digests = subprocess.run(
        ["md5sum", f"data/raw/{TAR}", f"data/raw/{DEVKIT}"], cwd=folder, capture_output=True, text=True, check=True
    )
    (folder / "raw.md5").write_text(digests.stdout)


def reproduced(folder: Path) -> Path:
    """The edition, once `dvc repro` has run in it."""
    environment = os.environ | forking(SOURCE) | {"NO_COLOR": "1"}
    subprocess.run(["dvc", "repro", "--quiet"], cwd=folder, check=True, env=environment)
    return folder


def wnids(real: Path) -> list[str]:
    """The 40 classes."""
    classes: list[str] = json.loads((real / "contents.json").read_text())["classes"]
    return classes
