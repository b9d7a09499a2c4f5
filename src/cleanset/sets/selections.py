"""The command `selection`: a named selection of ImageNet's validation images, as a folder for each class.

RobustBench measures its leaderboards of ImageNet on 5,000 images, with the labels of ILSVRC2012. Their list is in its
package, whose modules are not imported: that takes torch, and a library that it does not bring.
"""

from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

import pandas as pd

from cleanset.classes import imagenet
from cleanset.errors import CleansetError
from cleanset.image_ids import listed_ids
from cleanset.plumbing.files import new_folder, read_known
from cleanset.plumbing.progress import found_in_threads
from cleanset.plumbing.validation import check_known, shown
from cleanset.sets.delivered import make_class_folders
from cleanset.sets.published.lists import ilsvrc_class
from cleanset.sets.published.source_images import CHECKED, SourceImages, archive_md5, check_md5
from cleanset.statistics.formats import counted

ROBUSTBENCH = "robustbench"
"""The name of the selection, and of the package that has it."""
LIST = "helper_files/imagenet_test_image_ids.txt"
LIST_SHA256 = "d4121626d07722a0126c35b1563042e46a546f1a05ce705f2cdc635896d58574"
"""The list of robustbench 1.1.1, unchanged since its first release with ImageNet."""

SELECTIONS = (ROBUSTBENCH,)
"""The named selections."""


def run(name: str, images: Path, out: Path, digests: Path | None = None) -> str:
    """Write a selection into the new or empty folder `out`, from `images`: the tar, or a folder; return a summary.

    A tar must have the MD5 of the official archive, or the one in the table `digests`, with which every image is
    compared; without a table the images of a folder are taken unchanged. Everything is written, or nothing. Raises
    CleansetError for an unknown name, and for images that are missing or not the originals as far as can be known.
    """
    check_known("selection", name, SELECTIONS)
    ids = robustbench_images()
    source = SourceImages(images, digests)
    with new_folder(out) as folder:
        write_selection(folder, ids, source)
    classes = counted(len({ilsvrc_class(image_id) for image_id in ids}), "class")
    return f"{out}: {counted(len(ids), 'image')} of {classes}, by their ILSVRC2012 labels\n{CHECKED[source.check]}"


def robustbench_images() -> list[str]:
    """The image ids of RobustBench's selection, sorted.

    Raises CleansetError if robustbench is not installed, and for another list than the one that is known.
    """
    spec = find_spec(ROBUSTBENCH)
    remedy = "install it: pip install --no-deps robustbench==1.1.1"
    if spec is None or not spec.submodule_search_locations:
        raise CleansetError(f"{ROBUSTBENCH}: not installed; expected its list of images: {remedy}")
    path = Path(spec.submodule_search_locations[0]) / LIST
    data = read_known(path, LIST_SHA256, remedy)
    return parse_list(data.decode(), str(path))


def parse_list(text: str, where: str) -> list[str]:
    """The image ids of a list with a line `<wnid>/<image id>.JPEG` for each, sorted.

    Raises CleansetError for another line, a class other than the image's of ILSVRC2012, and an image that occurs twice.
    """
    lines = {f"{where}, line {number}": line for number, line in enumerate(text.splitlines(), start=1)}
    found = listed_ids(lines.items(), imagenet())
    for image_id, at in found.items():
        if PurePosixPath(lines[at]).parent.name != imagenet().keys[ilsvrc_class(image_id)]:
            raise CleansetError(
                f"{at}: {shown(lines[at])}; expected <wnid>/<image id>.JPEG, of a validation image and "
                "its ILSVRC2012 class"
            )
    return sorted(found)


def write_selection(folder: Path, ids: list[str], source: SourceImages) -> None:
    """Write images, byte for byte, into `<wnid>/<image id>.JPEG`. Raises CleansetError as `run` does."""
    with archive_md5(source.images) if source.is_archive else nullcontext(lambda: "") as md5_of_archive:
        source.locate(pd.DataFrame({"image_id": ids}))
        make_class_folders(folder, (imagenet().keys[ilsvrc_class(image_id)] for image_id in ids))

        def write(image_id: str) -> None:
            data, _ = source.read(image_id)
            (folder / imagenet().keys[ilsvrc_class(image_id)] / f"{image_id}.JPEG").write_bytes(data)

        try:
            found_in_threads(write, ids, "selection")
        finally:
            # if the whole archive is another one, that is the reason
            if source.is_archive:
                check_md5(source.images, md5_of_archive(), source.expected_md5)
