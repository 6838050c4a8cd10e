"""Regular expressions in the engine, by RE2 for Java.

Spark's own RLIKE tries all ways to match, and a pattern may have more of them than anybody can wait
for. RE2 follows all of them at once. Spark's generated code calls it by expressions that name the
methods. `catalog.regular_expression` says which patterns there are.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as fn


def regexp_like(text: Column, pattern: str) -> Column:
    """Whether a part of the text matches. The result is NULL if the text is NULL."""
    return _Calls().found(text, pattern)


def regexp_group(text: Column, pattern: str, group: int) -> Column:
    """What the group matched in the first match of the pattern, or NULL if there is no match.

    It is an empty text if the match did not use the group. Group 0 is the whole match.
    """
    calls = _Calls()
    matched = fn.coalesce(calls.group(text, pattern, group), fn.lit(""))
    return fn.when(calls.found(text, pattern), matched)


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
        # Spark may give one matcher to several expressions. So each begins at the first character.
        kind, matcher = self._types.DataTypes.BooleanType, self._matcher(text, pattern)
        return self._column(self._invoke(matcher, "find", kind, self._number(0)))

    def group(self, text: Column, pattern: str, number: int) -> Column:
        """What a group matched in the first match. There must be a match."""
        # The expression that fills a Java bean calls a method with a value, and gives the object.
        find = self._jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(
            {"find": self._number(0)}
        )
        matcher = self._matcher(text, pattern)
        matched = self._expressions.objects.InitializeJavaBean(matcher, find)
        kind = self._object("java.lang.String")
        java = self._invoke(matched, "group", kind, self._number(number))
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

    def _number(self, value: int) -> Any:
        return self._expressions.Literal(value, self._types.DataTypes.IntegerType)

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
