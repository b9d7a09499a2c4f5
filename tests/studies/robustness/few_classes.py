"""The sample's sets with fewer images."""

from collections.abc import Collection
from pathlib import Path

from cleanset.plumbing.files import sha256
from cleanset.sets.folder import CHECKSUMS, checksums, read_checksums
from cleanset.sets.manifest import MANIFEST

CLASSES = ("n02782093", "n02814860", "n04507155", "n07734744", "n07753592")
"""Some of the sample's classes: 21 images in the sets, 13, 13 and 12 of the models; 5 of them are in all three."""


def keep_classes(edition: Path, classes: Collection[str] = CLASSES) -> None:
    """Leave only the images of some classes in the manifests of an edition's sets."""
    for manifest in edition.glob("data/export/*/manifest.csv"):
        head, *rows = manifest.read_text().splitlines(keepends=True)
        text = head + "".join(row for row in rows if row.split(",")[1] in classes)
        listed = read_checksums(manifest.parent)[1] | {MANIFEST: sha256(text.encode())}
        for path, new in ((manifest, text), (manifest.with_name(CHECKSUMS), checksums(listed))):
            path.unlink()  # a link to the cache
            path.write_text(new)
