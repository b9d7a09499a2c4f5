"""Ten tiny images in the shape of ILSVRC2012, an edition around them, and the command line run on it."""

import hashlib
import io
import json
import multiprocessing
import os
import re
import resource
import sys
import tarfile
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing import forkserver
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from PIL import Image

from cleanset.cli import main

TAR = "ILSVRC2012_img_val.tar"
DEVKIT = "ILSVRC2012_devkit_t12.tar.gz"
TRUTH = "ILSVRC2012_validation_ground_truth.txt"
KIT = "ILSVRC2012_devkit_t12/data"
LABELS = (0, 0, 1, 278, 281, 281, 543, 970, 998, 999)
"""Class index of each of the ten images."""
TRUTH_LINES = "449\n449\n450\n1\n174\n174\n1000\n361\n329\n889\n"
"""The same in ILSVRC ids."""
SCORED: dict[str, Any] = {
    "role": "standard",
    "source": "timm",
    "name": "test_efficientnet",
    "preprocessing": {"name": "timm-bicubic-182-160", "resize": 182, "size": 160, "interpolation": "bicubic"},
    "weights_sha256": "5" * 64,
    "precision": "float64",
    "images": 10,
    "against_float64": None,
    "versions": {"numpy": "2.4.6", "pillow": "13.0.0", "robustbench": "1.1.1", "timm": "1.0.9", "torch": "2.11.0"},
    "code": "0" * 64,
}
"""What stage score writes next to the scores."""
REASSESSED = [[0], [0, 1], [], [278], [282, 281], [281], [543], [970], [7], [999]]

FORK_SERVER = multiprocessing.get_context("forkserver")
"""Starts processes that have imported what the commands need."""
PRELOADED = [
    "cleanset.stages.preprocess", "cleanset.stages.export", "cleanset.evaluation.compare.report",
    "cleanset.sets.arrays", "cleanset.sets.rebuild", "cleanset.sets.verify", "cleanset.sets.archive",
    "cleanset.review.status",
    "tests.ten_images", "tests.evaluation.compare.command",
]  # fmt: skip
PRELOADED_WITH_TORCH = [
    "cleanset.scoring.engine", "cleanset.scoring.validity", "cleanset.stages.score",
    "cleanset.studies.attacks.evaluated_models", "cleanset.studies.robustness.corruptions.changes",
    "cleanset.studies.robustness.evaluation", "cleanset.studies.robustness.perturbations.changes",
    "cleanset.studies.robustness.scenarios.changes",
]  # fmt: skip
FORK_SERVER.set_forkserver_preload(PRELOADED)


_SERVER: Any = vars(forkserver)["_forkserver"]


def server_address() -> str:
    """Start the server of forks, unless it runs; return where it listens, for `share_server`."""
    forkserver.ensure_running()
    return str(_SERVER._forkserver_address)


def share_server(address: str) -> None:
    """Let this server fork what this process starts, in place of one of its own that imports everything again."""
    _SERVER._forkserver_address = address
    forkserver.ensure_running = _SERVER.ensure_running = lambda: None


def id_of(number: int) -> str:
    return f"ILSVRC2012_val_{number:08d}"


def drawn_image(width: int, height: int, mode: str = "RGB", seed: int = 0) -> Image.Image:
    """A smooth drawn image."""
    rng = np.random.default_rng([width, height, seed])
    coarse = rng.integers(0, 256, (3, 4, len(mode)), dtype=np.uint8)
    small = Image.fromarray(coarse.squeeze(), mode=mode)
    return small.resize((width, height), Image.Resampling.BICUBIC)


def jpeg(image: Image.Image, **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, format="JPEG", quality=90, **options)
    return out.getvalue()


def ten_images() -> dict[str, bytes]:
    """Bytes by image id: RGB, and one greyscale, one CMYK, one with an EXIF orientation."""
    images = [jpeg(drawn_image(40 + 3 * number, 30 + number, seed=number)) for number in range(1, 8)]
    turned = Image.Exif()
    turned[0x0112] = 6
    images += [
        jpeg(drawn_image(33, 47, "L")),
        jpeg(drawn_image(48, 36, "CMYK")),
        jpeg(drawn_image(50, 30, seed=9), exif=turned),
    ]
    return {id_of(number): data for number, data in enumerate(images, start=1)}


def with_size(data: bytes, width: int, height: int) -> bytes:
    """A JPEG whose header claims another size."""
    at = data.index(b"\xff\xc0") + 5
    return data[:at] + height.to_bytes(2, "big") + width.to_bytes(2, "big") + data[at + 4 :]


def tar(members: Mapping[str, bytes] | Sequence[tuple[tarfile.TarInfo, bytes]], mode: Any = "w") -> bytes:
    """A tar of plain members, or of the given headers."""
    out = io.BytesIO()
    if isinstance(members, Mapping):
        members = [(tarfile.TarInfo(name), data) for name, data in members.items()]
    with tarfile.open(fileobj=out, mode=mode) as archive:
        for info, data in members:
            if data:
                info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def official(images: Mapping[str, bytes]) -> bytes:
    """The official tar: ILSVRC2012_val_00000001.JPEG and so on."""
    return tar({f"{name}.JPEG": data for name, data in images.items()})


def devkit_files(truth: str = TRUTH_LINES) -> dict[str, bytes]:
    return {f"{KIT}/{TRUTH}": truth.encode(), f"{KIT}/meta.mat": b"not read"}


def write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _in_child(folder: str, arguments: Sequence[str], stderr: str, most_bytes: int | None, server: str) -> None:
    share_server(server)
    os.chdir(folder)
    os.dup2(os.open(stderr, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    if most_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    sys.argv = ["cleanset", *arguments]
    main()


@dataclass
class Made:
    """An edition of the ten images."""

    folder: Path
    raw: str = "data/raw"
    dataset: dict[str, Any] = field(default_factory=dict)
    others: dict[str, Any] = field(default_factory=dict)

    def file(self, name: str) -> Path:
        """A raw file."""
        return self.folder / self.raw / name

    def archives(
        self, images: bytes | None = None, devkit: bytes | None = None, reassessed: str | None = None
    ) -> "Made":
        """Write the three raw files in the official shape, raw.md5 and params.yaml."""
        write(self.file(TAR), official(ten_images()) if images is None else images)
        write(self.file(DEVKIT), tar(devkit_files(), "w:gz") if devkit is None else devkit)
        write(self.file("reassessed.json"), (json.dumps(REASSESSED) if reassessed is None else reassessed).encode())
        self.dataset = {
            "images": f"{self.raw}/{TAR}",
            "devkit": f"{self.raw}/{DEVKIT}",
            "reassessed": f"{self.raw}/reassessed.json",
            "expect_images": 10,
        }
        self.settle()
        return self

    def settle(self) -> None:
        """Write raw.md5 of what is there, and params.yaml."""
        raw = self.folder / self.raw
        files = [path for path in (*raw.iterdir(), raw / "val" / "LOC_val_solution.csv") if path.is_file()]
        lines = [
            f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(self.folder).as_posix()}\n"
            for path in sorted(files)
        ]
        (self.folder / "raw.md5").write_text("".join(lines))
        self.params()

    def params(self, **changes: Any) -> None:
        """Write params.yaml with other values in section dataset."""
        self.dataset |= changes
        content = {"root": ".", "dataset": self.dataset, "models": {"standard": {"source": "timm", "name": "resnet18"}}}
        (self.folder / "params.yaml").write_text(yaml.safe_dump(content | self.others))

    def start(self, *arguments: str, most_bytes: int | None = None) -> ForkServerProcess:
        """The command line in a process of its own, in the edition's folder."""
        given = str(self.folder), arguments, self._stderr, most_bytes, server_address()
        process = FORK_SERVER.Process(target=_in_child, args=given)
        process.start()
        return process

    @property
    def _stderr(self) -> str:
        return str(Path(tempfile.gettempdir()) / f"stderr-{os.getpid()}")

    def run(self, *arguments: str, most_bytes: int | None = None) -> tuple[int | None, str]:
        """Exit code and standard error."""
        process = self.start(*arguments, most_bytes=most_bytes)
        process.join(60)
        stderr = Path(self._stderr)
        text = stderr.read_text()
        stderr.unlink()
        return process.exitcode, text

    def succeeds(self, *arguments: str) -> None:
        assert self.run(*arguments) == (0, "")

    def fails(self, message: str, *arguments: str, most_bytes: int | None = None) -> None:
        """Assert one line `error: ...` that is `message` (in it, * stands for anything), and nothing written."""
        before = self.outputs()
        code, stderr = self.run(*arguments or ("preprocess",), most_bytes=most_bytes)
        pattern = ".*".join(re.escape(part) for part in f"error: {message}\n".split("*"))
        assert re.fullmatch(pattern, stderr), f"found    {stderr}\nexpected error: {message}"
        assert code == 1
        assert self.outputs() == before

    def outputs(self) -> dict[str, bytes]:
        """Every file under data/ but the raw ones, temporary files among them."""
        return {
            path.relative_to(self.folder).as_posix(): path.read_bytes()
            for path in sorted((self.folder / "data").rglob("*"))
            if path.is_file() and path.parent != self.folder / "data" / "raw" and "raw/" not in str(path)
        }


Make = Callable[..., Made]
