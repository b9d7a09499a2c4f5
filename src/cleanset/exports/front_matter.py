"""The front matter of a data card: what a hub shows of a set, and how the library `datasets` reads it."""

from typing import Any

import yaml

from cleanset.dataset.class_names import label_names
from cleanset.exports.attribution import TERMS_URL, name_of
from cleanset.exports.manifest import COLUMNS, MANIFEST

_NUMBERS = {
    "rank": "int64", "confidence": "float64", "source_confidence": "float64", "ilsvrc_class": "int64",
    "reviewers": "int64",
    # a whole image has no box, and pandas, by which `datasets` reads CSV, has no whole numbers beside gaps
    "left": "float64", "top": "float64", "right": "float64", "bottom": "float64",
}  # fmt: skip
_WIDTH = 116


def front_matter(model: str, images: int, reviewed: bool, *, with_images: bool) -> str:
    """The front matter of a set with so many images. `reviewed`: by people. `with_images`: whether they lie beside it.

    Without its images, a set is read from its manifest, where the class is in the column class_index.
    """
    features = _features(with_images)
    fields = {
        "pretty_name": name_of(model),
        "license": "other",
        "license_name": "imagenet",
        "license_link": TERMS_URL,
        "annotations_creators": ["expert-generated" if reviewed else "machine-generated"],
        "language_creators": ["found"],
        "language": ["en"],
        "source_datasets": ["extended|imagenet-1k"],
        "task_categories": ["image-classification"],
        "task_ids": ["multi-class-image-classification"],
        "size_categories": [_size(images)],
        "tags": ["imagenet", "ilsvrc2012", "robustness", "adversarial-examples", "human-verified"],
        "configs": [
            {
                "config_name": "default",
                "data_files": [{"split": "validation", "path": "**" if with_images else MANIFEST}],
                # here they are read by; in dataset_info they are shown by
                "features": features,
            }
        ],
        "dataset_info": {"config_name": "default", "features": features},
    }
    text = yaml.safe_dump(fields, sort_keys=False, default_flow_style=None, width=_WIDTH, allow_unicode=True)
    return f"---\n{text}---"


def _size(images: int) -> str:
    limits = {1_000: "n<1K", 10_000: "1K<n<10K", 100_000: "10K<n<100K"}
    return next(name for limit, name in limits.items() if images < limit)


def _features(with_images: bool) -> list[dict[str, Any]]:
    features: list[dict[str, Any]] = [{"name": "image", "dtype": "image"}] if with_images else []
    for column in COLUMNS:
        if column == "class_index":
            names = {str(index): name for index, name in enumerate(label_names())}
            name = "label" if with_images else column
            features.append({"name": name, "dtype": {"class_label": {"names": names}}})
        elif column != "file" or not with_images:
            features.append({"name": column, "dtype": _NUMBERS.get(column, "string")})
    return features
