"""The rates of the hints that the docs state, measured again and written to hint_rates.yaml.

Flaws on every other of 500 labelled photographs, those of photos/ and photos_more/ in the folder of real photographs;
copies on those of photos_apart/, 500 of other classes that no rule was set on. Text is read where the extra `text` is
installed.
"""

import csv
import io
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date

import numpy as np
import timm
import torch
import yaml
from numpy.typing import NDArray
from PIL import Image, ImageOps
from safetensors.torch import load_file

from cleanset.images.codec import decode
from cleanset.report import hints as any_hints
from cleanset.review.hints.kinds import HINTS
from cleanset.review.hints.ranked import FoundHint, duplicate_hints, look_at
from measuring import PROJECT, REAL

RATES = PROJECT / "bench" / "hint_rates.yaml"
"""The rates that the docs state, each with the day on which the rules that it was measured with changed last."""
LABELS = {"photos": REAL / "flaws.csv", "photos_more": PROJECT / "bench" / "photos_more.csv"}
"""Reasons by photograph, for each folder of photographs."""
APART = "photos_apart"
RATED = ("text", "border", "artificial_background", "filter", "collage")
NETWORK = "tf_efficientnet_lite0"
NETWORK_RATED = ("filter", "collage")
NETWORK_FALSE = 0.02
"""Share of the photographs without a flaw that are above the limit of the classifier."""
RIDGE = 1_000.0
"""Penalty of the classifier's squared weights; of 100, 1,000 and 10,000 all find about as much."""
CROPPED_SHARES = (0.05, 0.12, 0.2)
"""Share of each side that a cropped copy lacks."""


def main() -> None:
