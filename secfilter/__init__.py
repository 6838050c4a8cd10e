"""The data plane: ingest, compiler, fan-out and the runner (the loop of an engine)."""
