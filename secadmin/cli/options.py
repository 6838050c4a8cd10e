"""Options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from catalog.permission import ObjectKind
from secadmin.cli.completion import names_of

StreamName = Annotated[
    str, typer.Argument(metavar="STREAM", autocompletion=names_of(ObjectKind.STREAM))
]
OutputName = Annotated[
    str, typer.Argument(metavar="OUTPUT", autocompletion=names_of(ObjectKind.OUTPUT))
]
QueryName = Annotated[
    str, typer.Argument(metavar="NAME", autocompletion=names_of(ObjectKind.QUERY))
]
SchemaName = Annotated[
    str, typer.Argument(metavar="NAME", autocompletion=names_of(ObjectKind.SCHEMA))
]
UserName = Annotated[str, typer.Argument(metavar="USER")]
NewFolder = Annotated[
    Path, typer.Option("--dir", metavar="DIR", help="A new folder for the access's files.")
]
Keep = Annotated[
    bool, typer.Option("--keep", help="Let it outlive this session, with the roles it has now.")
]
PasswordStdin = Annotated[
    bool, typer.Option("--password-stdin", help="Read the password from standard input.")
]
