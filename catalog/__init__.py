"""What exists: objects, owners, roles, permissions, categories, labels, plans, and their storage."""
