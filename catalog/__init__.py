"""The catalog: objects, owners, roles, permissions, labels and plans, and their storage."""
