"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Folder = Annotated[Path, typer.Option("--edition", help="Folder with params.yaml.", show_default="this folder")]
HERE = Path()
