"""SecAdmin's HTTP API: routes, requests, problem documents."""
