"""`TorchImageSet`, a finished set as a torch Dataset."""

from typing import Any

from torch.utils.data import Dataset

from cleanset.plumbing.json_files import JsonObject
from cleanset.sets.image_set import ImageSet


class TorchImageSet(ImageSet, Dataset[tuple[Any, int, JsonObject]]):
    """An ImageSet that is an instance of torch.utils.data.Dataset; works with torch 2.4 and newer."""
