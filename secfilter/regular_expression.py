"""Regular expressions in the engine, by RE2 for Java.

Spark's own RLIKE tries all ways to match, and a pattern may have more of them than anybody can wait
for. RE2 follows all of them at once. Spark's generated code calls it by expressions that name the
methods. `catalog.regular_expression` says which patterns there are.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as fn

_LIKE_CASE = "(?i)"


def regexp_like(text: Column, pattern: str) -> Column:
    """Whether a part of the text matches. The result is NULL if the text is NULL."""
    return _Calls().found(text, pattern)


def regexp_group(text: Column, pattern: str, group: int) -> Column:
    """What the group matched in the first match of the pattern, or NULL if there is no match.

    It is an empty text if the match did not use the group. Group 0 is the whole match.
    """
    calls = _Calls()
    # This also matches what is before and behind the first match, so that all is replaced.
    whole = rf"\A(?s:.*?){_as_group(pattern)}(?s:.*)\z"
    return fn.when(calls.found(text, pattern), calls.replaced(text, whole, f"${group + 1}"))


def _as_group(pattern: str) -> str:
    if pattern.startswith(_LIKE_CASE):
        return f"((?i:{pattern.removeprefix(_LIKE_CASE)}))"
    return f"({pattern})"


class _Calls:
    """Makes expressions that call RE2 in Spark's process."""

    def __init__(self) -> None:
        jvm: Any = SparkSession.active()._jvm
        self._jvm = jvm
        self._types = jvm.org.apache.spark.sql.types
        self._expressions = jvm.org.apache.spark.sql.catalyst.expressions
        self._columns = jvm.org.apache.spark.sql.classic.ExpressionUtils

    def found(self, text: Column, pattern: str) -> Column:
        """Whether a part of the text matches."""
        matcher = self._matcher(text, pattern)
        return self._column(self._invoke(matcher, "find", self._types.DataTypes.BooleanType))

    def replaced(self, text: Column, pattern: str, by: str) -> Column:
        """The text with the first match of the pattern replaced."""
        replacement = self._java_text(fn.lit(by))
        matcher = self._matcher(text, pattern)
        java = self._invoke(matcher, "replaceFirst", self._object("java.lang.String"), replacement)
        return self._column(
            self._expressions.objects.StaticInvoke(
                self._class("org.apache.spark.unsafe.types.UTF8String"),
                self._types.DataTypes.StringType,
                "fromString",
                *(self._list(java), self._list()),
                *(True, True, True, self._none()),
            )
        )

    def _matcher(self, text: Column, pattern: str) -> Any:
        compiled = self._jvm.com.google.re2j.Pattern.compile(pattern)
        constant = self._expressions.Literal(compiled, self._types.ObjectType(compiled.getClass()))
        kind = self._object("com.google.re2j.Matcher")
        return self._invoke(constant, "matcher", kind, self._java_text(text))

    def _java_text(self, text: Column) -> Any:
        inner = self._columns.expression(text._jc)
        return self._invoke(inner, "toString", self._object("java.lang.String"))

    def _invoke(self, target: Any, method: str, kind: Any, *arguments: Any) -> Any:
        # The last three: NULL stays NULL, the result may be NULL, the same input gives the same.
        given = self._list(*arguments)
        return self._expressions.objects.Invoke(
            target, method, kind, given, self._list(), True, True, True
        )

    def _object(self, name: str) -> Any:
        return self._types.ObjectType(self._class(name))

    def _class(self, name: str) -> Any:
        loader = self._jvm.java.lang.Thread.currentThread().getContextClassLoader()
        return self._jvm.java.lang.Class.forName(name, True, loader)

    def _list(self, *items: Any) -> Any:
        return self._jvm.org.apache.spark.api.python.PythonUtils.toSeq(list(items))

    def _none(self) -> Any:
        return getattr(self._jvm.scala, "None$").__getattr__("MODULE$")

    def _column(self, expression: Any) -> Column:
        return Column(self._columns.column(expression))
