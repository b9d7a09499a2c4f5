"""Small files in the forms of the label sources, for tests."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from cleanset.dataset.label_sources import LabelSource, known_sources
from cleanset.plumbing.files import sha256

PREFIX = "ILSVRC2012_val_"
PROPOSED = f"""id,category,original_label,proposed_labels,unclear_multi_labels,is_problematic
{PREFIX}00000004.JPEG,A,278,278,,False
{PREFIX}00000002.JPEG,M,0,"7, 0, 7",,False
{PREFIX}00000006.JPEG,B,281,3,"281, 282",True
{PREFIX}00000008.JPEG,Z,0,,,False
"""
ANNOTATIONS = json.dumps(
    {
        "initial_annots": {
            f"{PREFIX}00000004.JPEG": {"correct": ["n02119789"], "wrong": ["n02123045"]},
            f"{PREFIX}00000002.JPEG": {"correct": ["n01440764", "n01514668"]},
            f"{PREFIX}00000006.JPEG": {"correct": ["n01491361"], "unclear": ["n02123045", "n02123159"]},
            f"{PREFIX}00000008.JPEG": {"wrong": ["n01440764"]},
            "0af3f1b55de791c4144e2fb6d7dfe96dfc22d3fc": {"correct": [["of ImageNet-V2, in another form"]]},
        },
        "problematic_images": {f"{PREFIX}00000006.JPEG": {"reviewer": "left out"}},
        "imagenet_m": [f"{PREFIX}00000006.JPEG"],
        "annot_data": {"human_a": 1},
    }
)


def source_of(name: str, content: str) -> LabelSource:
    """A known source, whose published file has this content."""
    return replace(known_sources()[name], sha256=sha256(content.encode()))


def write_sources(folder: Path, contents: Mapping[str, str]) -> dict[str, LabelSource]:
    """Write the file of each source into a folder; the sources by name, with the files' digests."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {name: source_of(name, content) for name, content in contents.items()}
    for name, content in contents.items():
        (folder / found[name].file).write_text(content)
    return found
