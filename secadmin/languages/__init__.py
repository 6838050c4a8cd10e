"""Query languages: SQL and Borealis XML become plans.

`grammar.md` beside this file is the reference for SQL and for limits, `docs/borealis.md` for XML.
"""

from secadmin.languages.borealis.clock import DiagramResolver
from secadmin.languages.borealis.diagram import Diagram, parse_borealis
from secadmin.languages.resolver import Resolver, UnknownRelation
from secadmin.languages.sql.parse import parse_sql

__all__ = [
    "Diagram",
    "DiagramResolver",
    "Resolver",
    "UnknownRelation",
    "parse_borealis",
    "parse_sql",
]
