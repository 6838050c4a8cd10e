"""The data plane: ingest, compiler, fan-out and the runner (a Spark driver)."""
