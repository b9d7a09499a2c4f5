"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Folder = Annotated[Path, typer.Option("--edition", help="Folder with params.yaml.", show_default="this folder")]
StudyFolder = Annotated[Path, typer.Option("--study", help="Folder of the study.", show_default="the current one")]
HERE = Path()

Host = Annotated[str, typer.Option(help="Address to listen on; others need the printed token.")]
LOOPBACK = "127.0.0.1"
Port = Annotated[
    int | None,
    typer.Option(min=0, max=65535, help="0: any free port. Without it: a fixed one for this folder and name."),
]
Browser = Annotated[bool, typer.Option(help="Open the page in the browser.")]
