"""What exists: objects, owners, roles, permissions, labels, plans; and their storage."""
