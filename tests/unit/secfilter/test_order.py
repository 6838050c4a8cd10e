"""Spark's check of what streams cannot do is made, though Spark itself does not make it."""

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from secfilter.order import check_supported


def test_what_streams_cannot_do_is_refused(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load()
    timed = stream.withWatermark("timestamp", "1 second")
    counted = timed.groupBy("timestamp").count()
    for supported, mode in ((stream.where("value > 1"), "update"), (counted, "append")):
        check_supported(supported, mode)
    endless = stream.groupBy("value").count()
    for refused, mode in ((endless, "append"), (stream.limit(1), "update")):
        with pytest.raises(AnalysisException):
            check_supported(refused, mode)
