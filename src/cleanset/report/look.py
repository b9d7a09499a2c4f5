"""The command `look`: one page of any finished set, to be opened without a server."""

from functools import partial
from itertools import groupby
from pathlib import Path

from cleanset.plumbing.files import new_folder
from cleanset.plumbing.folder_updates import FolderUpdate
from cleanset.plumbing.kept_files import KeptFiles
from cleanset.plumbing.progress import found_in_threads
from cleanset.report.pages import page_environment
from cleanset.report.thumbnails import PageImage, kept_thumbnails, page_image, usual_thumbnail_files
from cleanset.sets.description import notices_of
from cleanset.sets.fetching.releases import opened
from cleanset.sets.folder import check_outside, one_set, read_image, read_release, read_set
from cleanset.sets.manifest import Entry, check_not_empty, have_tiers
from cleanset.statistics.formats import counted

LOOK_PAGE = "index.html"
IMAGES_FOLDER = "images"


def write(place: str, out: Path | None) -> str:
    """Write the page and the thumbnails of the only set in a place into a new folder, and return a line on it.

    `out`: None for a folder with the set's name in the current one. Every image is checked against the manifest.
    Raises CleansetError for the first one that differs.
    """
    source = one_set(opened(place))
    found = read_set(source)
    classes = found.classes
    entries = sorted(found.entries, key=lambda entry: (entry.class_index, entry.rank))
    check_not_empty(entries, source)
    out = out or Path(f"{Path(place).resolve().name.removesuffix('.tar')}-look")
    check_outside(out, source)
    release = read_release(source)
    with new_folder(out) as folder:
        update = FolderUpdate(folder, None)
        save = partial(_save, source, update, usual_thumbnail_files(), enlarged=not classes.is_imagenet)
        thumbnails = found_in_threads(save, entries, "look")
        by_class = groupby(zip(entries, thumbnails, strict=True), lambda pair: pair[0].class_index)
        text = (
            page_environment(classes)
            .get_template("look.html")
            .render(
                title=f"{', '.join(sorted({each.model for each in entries}))} {release.version}",
                count=len(entries),
                has_confidences=any(each.confidence is not None for each in entries),
                has_tiers=have_tiers(entries),
                notices=notices_of(entries, release),
                shown=[(classes.names[index], list(pairs)) for index, pairs in by_class],
                classes=len(classes),
            )
        )
        update.write_text(LOOK_PAGE, text)
    return f"{out / LOOK_PAGE}: {counted(len(entries), 'image')}; open it in a browser"


def _save(source: Path, update: FolderUpdate, kept: KeptFiles, entry: Entry, *, enlarged: bool) -> PageImage:
    data = read_image(source, entry)
    (made,) = kept_thumbnails(kept, entry.file_sha256, lambda: data, None, enlarged=enlarged)
    name = f"{IMAGES_FOLDER}/{entry.file}.jpg"
    update.write(name, made.jpeg)
    return page_image(name, made.width, made.height)
