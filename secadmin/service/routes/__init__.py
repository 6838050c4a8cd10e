"""All routes. Each kind of object has a file."""

from secadmin.service.routes import (
    accesses,
    conflict_classes,
    executions,
    grants,
    inspection,
    outputs,
    policies,
    queries,
    roles,
    schemas,
    sessions,
    streams,
    users,
)

ROUTERS = (
    sessions.router,
    users.router,
    roles.router,
    grants.router,
    schemas.router,
    streams.router,
    policies.router,
    policies.xacml_router,
    conflict_classes.router,
    queries.router,
    outputs.router,
    executions.router,
    accesses.router,
    inspection.router,
)
