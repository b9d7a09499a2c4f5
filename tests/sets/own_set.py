"""A finished set of images that are not ImageNet's, written without an edition."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from cleanset.classes import class_table
from cleanset.images.boxes import Box
from cleanset.images.codec import decode, pixels_sha256
from cleanset.plumbing.files import sha256
from cleanset.plumbing.folder_updates import FolderUpdate
from cleanset.selection.selected import SelectedImage
from cleanset.sets.delivered import DeliveredImage, SourceImage, make_class_folders, write_image
from cleanset.sets.description import Release
from cleanset.sets.folder import write_descriptions


def write_own_set(
    folder: Path, images: Path, class_of: Mapping[str, str], boxes: Mapping[str, Box] | None = None
) -> Path:
    """Write the set of the images `class_of`, class by image id, in their order; cropped where `boxes` has a box."""
    classes = class_table(sorted({(key, key) for key in class_of.values()}), "here")
    make_class_folders(folder, class_of.values())
    entries = []
    places: Counter[str] = Counter()
    for image_id, key in sorted(class_of.items(), key=lambda each: each[1]):
        data = (images / image_id).read_bytes()
        places[key] += 1
        label = classes.indices[key]
        selected = SelectedImage(
            image_id=image_id, class_index=label, place=places[key], tier="top5", rank=places[key], confidence=None,
            box=(boxes or {}).get(image_id),
        )  # fmt: skip
        delivered = DeliveredImage(
            selected=selected, confidence=None, ilsvrc_class=label, real_classes=(label,), reviewers=1,
            source_check="none",
        )  # fmt: skip
        source = SourceImage(data=data, sha256=sha256(data), pixels_sha256=pixels_sha256(decode(data)))
        entries.append(write_image(FolderUpdate(folder, None).write, delivered, source, role="resnet", classes=classes))
    write_descriptions(folder, entries, Release(classes=classes), {})
    return folder
