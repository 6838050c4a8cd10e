"""The audit log."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from catalog.models.base import Base, Key


class AuditEntry(Base):
    """One decision or change. `hash` covers the entry and the hash before it."""

    __tablename__ = "audit"
    seq: Mapped[int] = mapped_column(Key, primary_key=True, autoincrement=False)
    at: Mapped[datetime]
    actor: Mapped[str] = mapped_column(String(64))
    action: Mapped[str] = mapped_column(String(64))
    object: Mapped[str] = mapped_column(String(200))
    outcome: Mapped[str] = mapped_column(String(16))  # allowed, denied, changed, failed
    reason: Mapped[str]
    detail: Mapped[dict[str, Any]]
    hash: Mapped[str] = mapped_column(String(64))


class AuditHead(Base):
    """The number and hash of the newest entry. Changes lock this row, so they run one by one."""

    __tablename__ = "audit_head"
    id: Mapped[int] = mapped_column(Key, primary_key=True, autoincrement=False)
    seq: Mapped[int]
    hash: Mapped[str] = mapped_column(String(64))
