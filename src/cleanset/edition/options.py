"""Options that several commands share, and printing of results."""

from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cleanset.errors import CleansetError

if TYPE_CHECKING:
    from rich.console import RenderableType


def with_code(edition: Path) -> Path:
    """The same folder; a fresh clone of an edition gets its links to the code, which git does not keep."""
    from cleanset.edition import code_link

    # the command itself reports params.yaml, and reads an edition that cannot be written, too
    with suppress(CleansetError, OSError):
        for line in code_link.relink_code(edition):
            typer.echo(line, err=True)
    return edition


def _folder(callback: Callable[[Path], Path] | None = None) -> Any:
    return typer.Option("--edition", help="Folder with params.yaml.", show_default="this folder", callback=callback)


Folder = Annotated[Path, _folder(with_code)]
FolderAsItIs = Annotated[Path, _folder()]
"""The same, whose missing links to the code stay missing."""
StudyFolder = Annotated[Path, typer.Option("--study", help="Folder of the study.", show_default="the current one")]
HERE = Path()
NewFolder = Annotated[Path, typer.Option(help="A new or empty folder.")]
OutFolder = Annotated[Path, typer.Argument(help="A new or empty folder.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

Host = Annotated[str, typer.Option(help="Address to listen on; the page needs the printed token.")]
LOOPBACK = "127.0.0.1"
Port = Annotated[
    int | None,
    typer.Option(min=0, max=65535, help="0: any free port. Without it: a fixed one for this folder and name."),
]
PublicUrl = Annotated[
    str | None,
    typer.Option(help="The address that people open, if there is a reverse proxy or a forwarded port (ssh -L)."),
]
Browser = Annotated[bool, typer.Option(help="Open the page in the browser.")]
Architecture = Annotated[str | None, typer.Option(help="timm architecture of the weights file.")]
DeviceOption = Annotated[str | None, typer.Option(help="auto (default), cpu, cuda or cuda:N.")]
PrecisionOption = Annotated[
    str | None, typer.Option(help="float64 (default), float32, tf32 or bfloat16.", show_default=False)
]
FreshOption = Annotated[
    bool, typer.Option("--fresh", help="Ignore the results of an earlier run in --out, and recompute them.")
]
HubOption = Annotated[
    Path | None,
    typer.Option(
        help="Write a model card with a model-index for the Hugging Face Hub: an .md or .yaml file, or a folder."
    ),
]
ANY_MODEL = typer.Option(
    "--model",
    help="timm:NAME, torchvision:NAME.WEIGHTS, robustbench:THREAT/NAME, a file of weights, MODULE:CALLABLE, "
    "command:PROGRAM, or a role of the edition; NAME=MODEL gives it another name. Repeat it for each model.",
)
SetOrList = Annotated[
    str,
    typer.Argument(
        metavar="SET",
        help="A role of the edition, the folder or tar of an export, a folder with a folder for each class, or a "
        "CSV list of the edition's images and their classes.",
    ),
]
ListRole = Annotated[str | None, typer.Option("--role", help="With a list: only the rows of this model.")]
Restricted = Annotated[
    bool,
    typer.Option("--restricted", help="Predict only among the classes of the images, as for ImageNet-R and -A."),
]
ArchitectureOfWeights = Annotated[
    str | None,
    typer.Option(
        "--architecture", help="timm architecture of the weights file, unless a training study has trained it."
    ),
]
HintsPlace = Annotated[
    str,
    typer.Argument(
        metavar="FOLDER|SET",
        help="A folder of images of any layout, the folder of a set or of an edition with one, or a tar of a set.",
    ),
]
ReadText = Annotated[
    bool | None, typer.Option("--text/--no-text", help="Read text.", show_default="of 1,000 images at most")
]
PaperForm = StrEnum("PaperForm", ["latex", "markdown", "csv"])
Form = Annotated[
    PaperForm | None,
    typer.Option("--format", help="Print only a table, for a paper; LaTeX needs the package booktabs."),
]
AnyImages = Annotated[
    str,
    typer.Argument(
        metavar="SET",
        help="A role of the edition, the folder of an export or of an edition, a folder per wnid, a file with the ids "
        "of some of the edition's images, one a line, or a list (.csv) as cleanset evaluate takes it.",
    ),
]
EditionOfRoles = Annotated[
    Path,
    typer.Option(help="Folder of the edition that the roles belong to.", show_default="the current one"),
]


def show(found: "RenderableType") -> None:
    """Print a text, which may end its last line, and a table as wide as the terminal."""
    if isinstance(found, str):
        print(found.removesuffix("\n"))
    else:
        from rich.console import Console

        Console().print(found, highlight=False)
