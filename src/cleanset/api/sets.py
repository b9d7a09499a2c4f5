"""`hints`, `verify` and `published`: the commands of these names as functions."""

from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from cleanset.api.results import MeasureResults
from cleanset.errors import needs_extra
from cleanset.sets.image_set import ImageSet
from cleanset.statistics.formats import counted

if TYPE_CHECKING:
    from cleanset.sets.verify import Verification


def hints(
    images: str | Path,
    *,
    text: bool | None = None,
    page: str | Path | None = None,
    most: int = 500,
    custom: Sequence[str] = (),
) -> MeasureResults:
    """The hints at flaws of any images, as `cleanset hints` finds them: borders, text, blur, copies and others.

    `images`: a folder of images, or of a set. `text`: whether text is read, which takes a core 0.15 to 0.65 s an image;
    None: in at most 1,000 images. `page`: a new .html file with the `most` severe images. `custom`: your own hints, as
    "my_module:MyHint". `to_pandas()` has a row for each hint, the most severe first: image, hint, severity, sign,
    measure, value, limit, other. Raises CleansetError.
    """
    with needs_extra("review"):
        import pandas as pd

        from cleanset.report import hints as tool
        from cleanset.scoring.own_code import code_digests, forget_changed_modules

        forget_changed_modules()
        found = tool.write(str(images), None if page is None else Path(page), most=most, text=text, custom=custom)
    code = {"code": code_digests(list(custom), tool.CUSTOM)} if custom else {}
    rows = pd.read_csv(StringIO(tool.as_csv(found)), keep_default_na=False)
    return MeasureResults(
        name=f"hints at {counted(found.count, 'image')} of {found.source}",
        text=tool.as_table(found),
        tables=[],
        rows=rows,
        content={"images": found.count, "notices": list(found.notices), "hints": rows.to_dict("records"), **code},
        problems={str(number): notice for number, notice in enumerate(found.notices, start=1)},
    )


def verify(
    images: ImageSet | str | Path,
    *,
    decode: bool = False,
    signature: str | Path | None = None,
    expect: str | None = None,
) -> "Verification":
    """Compare a finished set with its manifest, as `cleanset verify` does; its `problems` are empty if all is good.

    `images`: what `cleanset.load` gives, the folder of a set, or the tar of a published one. `decode`: decode every
    image, also where its SHA-256 matches. `signature`: a public SSH key that must have signed it; `expect`: the release
    that it must be, such as "standard@1.0.0". Raises CleansetError for a place without a set.

        >>> cleanset.verify("data/export/standard").problems
        ()

    """
    from cleanset.sets import verify as tool

    folder = images.folder if isinstance(images, ImageSet) else Path(images)
    # a set in its edition is compared with the edition, too
    with needs_extra("evaluate"):
        return tool.run(folder, decode, None if signature is None else Path(signature), expect)


def published(
    images: str | Path,
    out: str | Path,
    *,
    role: str = "norm_robust",
    unreviewed: str = "pending",
    reviews: Sequence[str | Path] = (),
    digests: str | Path | None = None,
    labels: str | Path | None = None,
) -> ImageSet:
    """Write the published set of SCOOTER, made from your own copy of ImageNet, as `cleanset published` does; load it.

    `images`: the tar of the validation images, or a folder of any layout. `out`: a new or empty folder. The other
    arguments are the options of the command. Raises CleansetError.
    """
    from cleanset.loading import load
    from cleanset.sets.published import image_set as tool
    from cleanset.sets.published.lists import PublishedChoice

    choice = PublishedChoice(role, unreviewed, tuple(map(Path, reviews)), None if labels is None else Path(labels))
    tool.run(choice, Path(images), Path(out), None if digests is None else Path(digests))
    return load(Path(out))
