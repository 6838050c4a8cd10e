"""Query languages: SQL and Borealis XML become plans.

`grammar.md` beside this file is the reference for SQL and for limits, `docs/borealis.md` for XML.
"""

from secadmin.languages.borealis.clock import DiagramResolver
from secadmin.languages.borealis.diagram import Diagram, parse_borealis
from secadmin.languages.condition import parse_condition
from secadmin.languages.expressions.statement import Statement
from secadmin.languages.label_rule import parse_label_rule, rule_text
from secadmin.languages.level_rule import company_rule_text, parse_company_rule
from secadmin.languages.resolver import Resolver, UnknownRelation
from secadmin.languages.sql.parse import parse_sql, sql_statement
from secadmin.languages.writing.expression_text import expression_text
from secadmin.languages.writing.sql_text import sql_text
from secadmin.languages.writing.unsayable import Unsayable
from secadmin.languages.writing.xml_text import xml_text

__all__ = [
    "Diagram",
    "DiagramResolver",
    "Resolver",
    "Statement",
    "UnknownRelation",
    "Unsayable",
    "company_rule_text",
    "expression_text",
    "parse_borealis",
    "parse_company_rule",
    "parse_condition",
    "parse_label_rule",
    "parse_sql",
    "rule_text",
    "sql_statement",
    "sql_text",
    "xml_text",
]
