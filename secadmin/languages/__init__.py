"""Query languages: SQL and Borealis XML become plans.

`grammar.md` beside this file is the reference for users.
"""

from secadmin.languages.borealis.diagram import Diagram, parse_borealis
from secadmin.languages.resolver import Resolver, UnknownRelation
from secadmin.languages.sql.parse import parse_sql

__all__ = ["Diagram", "Resolver", "UnknownRelation", "parse_borealis", "parse_sql"]
