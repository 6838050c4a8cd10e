"""What all tables of the catalog have in common."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import JSON, BigInteger, DateTime, Index, Integer, text
from sqlalchemy.orm import DeclarativeBase

# SQLite numbers rows by itself only for INTEGER keys.
Key = BigInteger().with_variant(Integer, "sqlite")


class Base(DeclarativeBase):
    """All tables. Times are UTC; on every database they are stored without a zone."""

    type_annotation_map: ClassVar = {
        dict[str, Any]: JSON,
        datetime: DateTime(timezone=False),
        int: BigInteger,
    }


def of_those(name: str, without: str, column: str) -> Index:
    """An index of the rows without a time in the column `without`, for frequent searches."""
    where = text(f"{without} IS NULL")
    return Index(name, column, sqlite_where=where, postgresql_where=where)
