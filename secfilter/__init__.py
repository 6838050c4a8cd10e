"""SecFilter: ingest, compiler, fan-out and the runner, which is the loop of an engine."""
