"""Write the settings file that `catalog.settings.Settings` reads: TOML, mode 0600.

A deployment on another cluster gives a file with only what differs, such as `[catalog]` and
`[kafka]`; the rest is filled in, and the whole is written into the state folder.
"""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from catalog.errors import InvalidInput
from catalog.form_version import require_readable
from catalog.private_file import write_private
from catalog.settings import FORMER_ACCOUNT, SETTINGS_FORM, has_former_account
from deploy.broker_properties import INGEST_USER, QUERY_USER
from deploy.certificates import Certificates
from deploy.credentials import Credentials, ensure_credentials
from deploy.errors import DeployError
from deploy.files import private_folder, secret_file

Table: TypeAlias = dict[str, "str | int | float | bool | Table"]

# Each real-time query holds a slot a partition for as long as it runs; a waiting thread costs
# little, and a query that finds no slot stands still.
SPARK_MASTER = "local[256]"
# 96 random bits: it is typed by a person, once.
FIRST_PASSWORD_BYTES = 12
# Writes the audit log's heads to Kafka; SecAdmin makes it there.
AUDIT_USER = "secadmin-audit"
_MADE_USERS = {"ingest": INGEST_USER, "query": QUERY_USER, "audit": AUDIT_USER}
_PATHS = {"jars", "checkpoints"}


def local_kafka(bootstrap: str, users: str, ca: Path, secadmin: Credentials) -> Table:
    """The `[kafka]` table of an embedded broker.

    `bootstrap` and `users` are `host:port`, for the platform and for users. The accounts beside
    SecAdmin's are in `local_settings`.
    """
    return {
        "bootstrap": bootstrap,
        "clients_bootstrap": users,
        # Its first snapshot holds the platform's users (`deploy.broker_snapshot`).
        "removes_users": True,
        "ca_file": str(ca),
        "replication": 1,
        "secadmin": _account(secadmin),
    }


def _account(credentials: Credentials) -> Table:
    return {
        "username": credentials.username,
        "password_file": str(credentials.password_file),
    }


def local_settings(
    state: Path,
    certificates: Certificates,
    port: int,
    jars: Path,
    engines: int = 1,
    *,
    spare: bool = False,
) -> Table:
    """All tables for a deployment in `state`, making its folders and secrets.

    Of `[kafka]` it has only the accounts that SecAdmin makes: those of the engines, and that for
    the audit log's heads.

    Args:
        state: The deployment's private folder, absolute.
        certificates: Where SecAdmin's certificate comes from.
        port: SecAdmin's port on 127.0.0.1.
        jars: Folder of the connector's jars.
        engines: How many engines run queries.
        spare: Whether the supervisor keeps a spare engine.
    """
    secrets = private_folder(state / "secrets")
    first = secret_file(secrets / "first-administrator.password", FIRST_PASSWORD_BYTES)
    return {
        "version": SETTINGS_FORM,
        "catalog": {"url": f"sqlite:///{state / 'catalog.db'}"},
        "kafka": {
            name: _account(ensure_credentials(secrets, user)) for name, user in _MADE_USERS.items()
        },
        "secadmin": {
            "host": "127.0.0.1",
            "port": port,
            "certificate_file": str(certificates.secadmin.certificate),
            "key_file": str(certificates.secadmin.key),
            "ca_file": str(certificates.ca),
            "first_password_file": str(first),
            "audit_key_file": str(secret_file(secrets / "audit.key", 32)),
            "audit_heads_file": str(private_folder(state / "audit") / "heads"),
        },
        "secfilter": {
            "engines": engines,
            "spare": spare,
            "master": SPARK_MASTER,
            "jars": str(jars),
            "checkpoints": str(private_folder(state / "checkpoints")),
            "id_key_file": str(secret_file(secrets / "result-id.key", 32)),
        },
    }


def read_overrides(file: Path) -> Table:
    """Read an operator's settings; relative paths in it are relative to its folder.

    Raises:
        DeployError: The file cannot be read, is not TOML, has a newer form, or names the account of
            former versions.
    """
    try:
        data: Table = tomllib.loads(file.read_text())
    except OSError as error:
        raise DeployError(f"cannot read the settings {file}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DeployError(f"the settings {file} are not TOML: {error}") from error
    try:
        require_readable(f"the file {file}", data, SETTINGS_FORM)
    except InvalidInput as error:
        raise DeployError(str(error)) from error
    # What is filled in has the form of this program.
    data.pop("version", None)
    if not isinstance(data.get("kafka"), dict):
        raise DeployError(f"the settings {file} lack [kafka]: deploy/README.md says what it holds")
    if has_former_account(data):
        raise DeployError(f"the settings {file}: {FORMER_ACCOUNT}")
    return _absolute(data, file.resolve().parent)


def _absolute(table: Table, folder: Path) -> Table:
    result: Table = {}
    for name, value in table.items():
        if isinstance(value, dict):
            result[name] = _absolute(value, folder)
        elif isinstance(value, str) and (name.endswith("_file") or name in _PATHS):
            # Joining leaves an absolute path as it is.
            result[name] = str(folder / value)
        else:
            result[name] = value
    return result


def merged(base: Mapping[str, object], over: Mapping[str, object]) -> Table:
    """`base` with what `over` says instead, table by table."""
    result = dict(base)
    for name, value in over.items():
        below = result.get(name)
        both = isinstance(below, dict) and isinstance(value, dict)
        result[name] = merged(below, value) if both else value  # type: ignore[arg-type]
    return result  # type: ignore[return-value]


def engine_settings(table: Table, account: str) -> Table:
    """The settings of the engines of that account: without the database URLs of all other parts.

    So an engine that runs as a user of its own, with a role of its own in the database, knows no
    other role's password.
    """
    catalog = table["catalog"]
    if not isinstance(catalog, dict):
        raise DeployError("the settings lack [catalog]")
    own = catalog.get(account)
    url = own["url"] if isinstance(own, dict) and "url" in own else catalog["url"]
    return {**table, "catalog": {"url": url}}


def write_settings(table: Table, file: Path) -> Path:
    """Write `table` as TOML to `file`, mode 0600; returns `file`."""
    return write_private(file, to_toml(table))


def to_toml(table: Table, prefix: str = "") -> str:
    """The TOML text of nested tables of strings, numbers and booleans."""
    lines = [
        f"{_key(name)} = {_value(value)}"
        for name, value in table.items()
        if not isinstance(value, dict)
    ]
    text = (f"[{prefix}]\n" if prefix and lines else "") + "".join(f"{line}\n" for line in lines)
    for name, value in table.items():
        if isinstance(value, dict):
            text += to_toml(value, f"{prefix}.{_key(name)}" if prefix else _key(name))
    return text


def _key(name: str) -> str:
    bare = name.replace("_", "").replace("-", "")
    return name if bare.isascii() and bare.isalnum() else _value(name)


def _value(value: "str | int | float | bool") -> str:
    # A JSON string is a TOML string, DEL excepted, which TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
