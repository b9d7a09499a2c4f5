"""Images that take long in one process. A process that makes them imports this module, and not torch with the tests."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import sleep

from PIL import Image


@dataclass(frozen=True)
class SlowInOne:
    """Images, after half a second in the first process that asks for one, which leaves its number in a file."""

    folder: Path

    def __call__(self, image_id: str) -> Image.Image:
        with suppress(FileExistsError), (self.folder / "slow").open("x") as file:
            file.write(str(os.getpid()))
        is_slow = (self.folder / "slow").read_text() == str(os.getpid())
        sleep(0.5 if is_slow else 0.01)
        with (self.folder / str(os.getpid())).open("a") as file:
            file.write(f"{image_id}\n")
        return Image.new("RGB", (32, 32))
