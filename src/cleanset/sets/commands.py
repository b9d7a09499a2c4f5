"""The commands that get, check and release finished sets. Each imports its libraries only when it runs."""

from pathlib import Path
from typing import Annotated

import typer

from cleanset.edition.options import HERE, Folder, Json, NewFolder, OutFolder
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError, one_line

commands = typer.Typer()

ValidationImages = Annotated[
    Path, typer.Option(help="Your ImageNet validation images: the tar, or a folder of any layout.")
]
DigestsTable = Annotated[
    Path | None,
    typer.Option(help="A table of cleanset digests, to verify every image.", show_default="the package's"),
]


@commands.command()
def published(
    images: ValidationImages,
    out: NewFolder,
    model: Annotated[
        str, typer.Option(help="norm_robust, whose set was published, standard or corruption_robust.")
    ] = "norm_robust",
    unreviewed: Annotated[
        str, typer.Option(metavar="pending|clean", help="clean: fill up with images that nobody has reviewed.")
    ] = "pending",
    reviews: Annotated[
        list[Path] | None,
        typer.Option(help="A folder of further reviewers, for example with crop boxes; repeat it for each."),
    ] = None,
    digests: DigestsTable = None,
    labels_in: Annotated[
        Path | None,
        typer.Option(
            "--labels",
            help="Note for each image which studies contradict its class, by their files in this folder "
            "(cleanset labels --list).",
        ),
    ] = None,
) -> None:
    """Write the published set of SCOOTER, from your own copy of ImageNet.

    Compares the tar with the MD5 of the official archive. The images of a
    folder are verified by a table of digests, if given.
    """
    from cleanset.sets.published import image_set as tool
    from cleanset.sets.published.lists import PublishedChoice

    choice = PublishedChoice(model, unreviewed, tuple(reviews or ()), labels_in)
    typer.echo(tool.render(tool.run(choice, images, out, digests)))


@commands.command()
def fetch(
    url: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS",
            help="The address of a git repository with an edition, or a release: the HTTPS address of its tar, or a "
            "DOI or record of Zenodo.",
        ),
    ],
    model: Annotated[str, typer.Argument(help="Role, such as standard; not needed if there is one set.")] = "",
    rev: Annotated[str | None, typer.Option(help="A branch, tag or commit.", show_default="its HEAD")] = None,
    folder: Annotated[str, typer.Option(help="The edition inside the repository, such as imagenet.")] = ".",
    out: Annotated[Path | None, typer.Option(help="Copy the set to a new or empty folder.")] = None,
    update: Annotated[bool, typer.Option("--update", help="Resolve the revision to a commit again.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Check every local file, and repair it.")] = False,
) -> None:
    """Fetch a finished set that a git repository or a release publishes, and check it.

    Keeps it in ~/.cache/cleanset (or CLEANSET_CACHE) and prints the path. If
    interrupted, run it again: only missing files are fetched. Runs no fetched
    code (cleanset docs security).
    """
    from cleanset.sets.fetching import fetch as tool

    typer.echo(tool.render(tool.run(url, model, rev, folder, out=out, update=update, force=force)))


@commands.command()
def rebuild(
    manifest: Annotated[Path, typer.Option(help="The manifest of the set (or the folder with it).")],
    images: Annotated[
        Path,
        typer.Option(
            help="The images that the set was made of, a tar or a folder of any layout: your ImageNet validation "
            "images, or others, which may have new names."
        ),
    ],
    out: NewFolder,
) -> None:
    """Rebuild a set from its manifest and your own copy of the images.

    Writes all images, or none, and prints a line for each mismatch. Runs no
    code of the set (cleanset docs security).
    """
    from cleanset.sets import rebuild as tool

    result = tool.run(manifest, images, out)
    typer.echo(tool.render(result))
    raise typer.Exit(1 if result.problems else 0)


@commands.command()
def verify(
    folder: Annotated[
        Path, typer.Argument(help="The folder of an export, such as data/export/standard, or a published one or tar.")
    ],
    decode: Annotated[bool, typer.Option("--decode", help="Decode every image, even if its SHA-256 matches.")] = False,
    signature: Annotated[
        Path | None,
        typer.Option(help="Require a signature by this public SSH key, or by one of a file of allowed signers."),
    ] = None,
    expect: Annotated[
        str | None,
        typer.Option(metavar="MODEL@VERSION", help="With --signature: require this release, such as standard@1.0.0."),
    ] = None,
    from_verdicts: Annotated[
        bool,
        typer.Option(
            "--from-verdicts", help="For a release of an edition: recompute its sets from scores and verdicts."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Check a finished set against its manifest; exit code 1 if anything differs.

    Prints a line for each file that is missing, surplus or changed.
    """
    from cleanset.sets import verify as tool

    if from_verdicts:
        # by the program in the release itself, which knows no other option
        from cleanset.sets import release

        if decode or expect or as_json:
            raise CleansetError("--from-verdicts: with --decode, --expect or --json; expected --signature at most")
        problems = release.verify(folder, signature)
        typer.echo("\n".join(map(one_line, [*problems, f"{folder}: problems: {len(problems)}"])))
        raise typer.Exit(1 if problems else 0)
    verification = tool.run(folder, decode, signature, expect)
    typer.echo(tool.render(verification, as_json))
    raise typer.Exit(1 if verification.problems else 0)


@commands.command()
def cite(
    form: Annotated[str, typer.Option("--format", metavar="bibtex|text", help="BibTeX, or plain text.")] = "bibtex",
) -> None:
    """Print the citations: cleanset, SCOOTER, ImageNet, the reassessed labels."""
    from cleanset.sets import description as citations

    typer.echo(citations.render(form))


@commands.command()
def selection(
    name: Annotated[str, typer.Argument(help="robustbench: the 5,000 images of its leaderboards of ImageNet.")],
    images: ValidationImages,
    out: NewFolder,
    digests: DigestsTable = None,
) -> None:
    """Write a benchmark's selection of validation images, a folder per class.

    Compares the tar with the MD5 of the official archive, as published does.
    Classes are the labels of ILSVRC2012.
    """
    from cleanset.sets import selections

    typer.echo(selections.run(name, images, out, digests))


@commands.command()
def publish(
    folder: Annotated[
        Path, typer.Argument(help="The folder of an export, such as data/export/standard, or of an edition.")
    ],
    out: OutFolder,
    with_images: Annotated[
        bool, typer.Option("--with-images", help="Include the images; ImageNet's terms restrict who may have them.")
    ] = False,
    key: Annotated[Path | None, typer.Option(help="Sign it with this SSH key, such as ~/.ssh/id_ed25519.")] = None,
) -> None:
    """Prepare a finished set for a hub or an archive, as a folder and a tar.

    Manifest, card, Croissant, licence, rejected candidates, checksums. For an
    edition: the sets of all models, with the scores and verdicts that
    determine them.
    """
    from cleanset.sets import publish as tool

    if Edition(folder).params_yaml.is_file():
        from cleanset.sets import release

        publication = release.run(Edition(folder), out, with_images, key)
    else:
        publication = tool.run(folder, out, with_images, key)
    if publication.word_on_terms:
        typer.echo(publication.word_on_terms, err=True)
    typer.echo(tool.render(publication))


@commands.command()
def pack(
    folder: Annotated[Path, typer.Argument(help="The folder of an export, such as data/export/standard.")],
    out: NewFolder,
    shard_size: Annotated[int, typer.Option(min=1, help="Images per shard.")] = 1000,
) -> None:
    """Pack a finished set into WebDataset shards."""
    from cleanset.sets import archive

    typer.echo(archive.pack(folder, out, shard_size))


@commands.command()
def arrays(
    out: OutFolder,
    preprocessing: Annotated[
        str | None,
        typer.Option(help="keras256, Res256Crop224, or the role of a model in params.yaml, for the model's."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Only the finished set of this model; preprocessed for it by default.")
    ] = None,
    edition: Folder = HERE,
) -> None:
    """Write preprocessed images and their labels as .npy files: all images, or a finished set's."""
    from cleanset.sets import arrays as tool

    tool.run(Edition(edition), out, preprocessing, model)


@commands.command()
def digests(
    images: Annotated[Path, typer.Option(help="ILSVRC2012_img_val.tar.")],
    out: Annotated[Path, typer.Option(help="A new file, such as digests.csv.")],
) -> None:
    """Write the SHA-256 of every image of the official archive.

    With the table, cleanset published verifies folders image by image.
    """
    from cleanset.sets.published import source_images as tool

    typer.echo(tool.run(images, out))
