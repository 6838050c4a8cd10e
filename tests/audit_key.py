"""The audit log's key in tests that do not read one from a file."""

from __future__ import annotations

from catalog.audit_key import AuditKey

AUDIT_KEY = AuditKey(bytes(range(32)))
