"""A command as a model: it is given a folder of images and prints a class for each.

`command:PROGRAM ARGUMENT…` names it, as a shell reads it. The path of the folder, whose PNGs are 224 x 224 pixels, is
its last argument; it prints a line `file, wnid` for each of them, in any order. An answer becomes logits of 1 for the
class and 0 for the others: its confidences tell nothing, and it has no gradient.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Collection
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from cleanset.dataset.ilsvrc import CLASSES, class_indices
from cleanset.errors import CleansetError, reason
from cleanset.files import sha256
from cleanset.images import codec
from cleanset.images.preprocessing import RES256CROP224
from cleanset.measure.prediction_files import printed_answers
from cleanset.measure.specs import CommandModel
from cleanset.scoring.models import LoadedModel
from cleanset.validation import shown


class CommandNetwork(nn.Module):
    """The answers of a command to 8-bit copies of pixels: logits (n, 1000), without a gradient."""

    def __init__(self, name: str, command: tuple[str, ...]) -> None:
        super().__init__()
        self._name, self._command = name, command

    def forward(self, pixels: Tensor) -> Tensor:
        """Logits of shape (n, 1000). Raises CleansetError, naming the model, for a command that does not answer."""
        levels = torch.round(pixels.detach().cpu().double() * 255).clamp(0, 255).to(torch.uint8)
        # numbers tell the command nothing about the images
        names = [f"{number:05d}.png" for number in range(len(levels))]
        with tempfile.TemporaryDirectory() as folder:
            for name, image in zip(names, levels.permute(0, 2, 3, 1).numpy(), strict=True):
                Path(folder, name).write_bytes(codec.png(Image.fromarray(np.ascontiguousarray(image))))
            classes = answered(self._output(folder), names, self._name)
        found = torch.tensor([classes[name] for name in names], dtype=torch.int64, device=pixels.device)
        return nn.functional.one_hot(found, CLASSES).to(pixels.dtype)

    def _output(self, folder: str) -> str:
        try:
            done = subprocess.run([*self._command, folder], capture_output=True, stdin=subprocess.DEVNULL, check=False)
        except OSError as error:
            raise CleansetError(f"{self._name}: does not start ({reason(error)}); expected a program") from None
        if done.returncode != 0:
            said = done.stderr[-2000:].decode(errors="replace").strip().rpartition("\n")[2]
            raise CleansetError(f"{self._name}: ends with exit code {done.returncode} ({shown(said)}); expected 0")
        return done.stdout.decode(errors="replace")


def answered(text: str, files: Collection[str], name: str) -> dict[str, int]:
    """The class index of each file, from lines `file, wnid`.

    Raises CleansetError, naming the model, for another line, and for a file without an answer or with two.
    """
    found = printed_answers(
        text, files, name, class_indices().__contains__, kind="a wnid", expected="a wnid such as n01443537"
    )
    missing = sorted(set(files) - set(found))
    if missing:
        raise CleansetError(
            f"{name}: no answer to {len(missing)} of {len(files)} images, {missing[0]} among them; expected a line "
            "`file, wnid` for each"
        )
    return {file: class_indices()[wnid] for file, wnid in found.items()}


def check_command(spec: CommandModel) -> None:
    """Raise CleansetError unless the program of a command is there."""
    if shutil.which(spec.command[0]) is None:
        raise CleansetError(f"--model {spec.text}: no program {shown(spec.command[0])} here or on the PATH")


def load_command(spec: CommandModel) -> LoadedModel:
    """The command as a model; its digest is that of the line, since what the program is made of is not known."""
    return LoadedModel(CommandNetwork(spec.text, spec.command).eval(), RES256CROP224, sha256(spec.text.encode()))
