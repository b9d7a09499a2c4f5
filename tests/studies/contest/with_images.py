"""A made contest with images to run a defence on, and a command among its defences."""

import io
import sys

from PIL import Image

from cleanset.classes import imagenet
from cleanset.sets.manifest import file_name, manifest_csv
from tests.studies.contest.on_disk import OnDisk, digest, png
from tests.studies.robustness.entries import entry

COMMAND = """
from PIL import Image
for name in sorted(os.listdir(sys.argv[1])):
    color = Image.open(os.path.join(sys.argv[1], name)).getpixel((0, 0))
    print(name + ", " + ("bird" if color[0] % 2 else "abstain"))
"""


def ready(made: OnDisk) -> None:
    """Three images of class tench in the finished set; the groups are tench and goldfish."""
    folder, entries = made.edition / "data" / "export" / "standard", []
    for number in (1, 2, 3):
        data = png((10 * number, 200, 100), (40, 30), "JPEG")
        entries.append(entry(number, digest=digest(data)).model_copy(update={"rank": number}))
        path = folder / file_name(entries[-1].wnid, entries[-1].image_id, None, imagenet())
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    made.text(folder / "manifest.csv", manifest_csv(entries, imagenet()))
    others = next(wnid for wnid in ("n01443537", "n01484850") if wnid != entries[0].wnid)
    made.changed("contest", classes={"bicycle": [others], "bird": [entries[0].wnid]})


def odd(data: bytes) -> bool:
    """Whether the command calls an image a bird."""
    with Image.open(io.BytesIO(data)) as image:
        return image.convert("RGB").tobytes()[0] % 2 == 1


def use_command(made: OnDisk, code: str = COMMAND, *names: str) -> None:
    """Make gold/wall a command that the board has accepted, and enter others beside it."""
    text = "import os, sys\n" + code
    sha = made.put(text.encode())
    command = {"open": False, "command": [sys.executable, "run.py"], "files": [{"path": "run.py", "sha256": sha}]}
    made.story = [each for each in made.story if each[1] not in ("run", "accept", "defence")]
    for name in reversed(("gold/wall", *names)):
        made.story.insert(2, ("2026-11-01T10:00:00Z", "accept", {"defence": name}))
        made.story.insert(2, ("2026-11-01T10:00:00Z", "defence", {"name": name, **command}))
    made.write()
