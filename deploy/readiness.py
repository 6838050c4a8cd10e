"""Wait until a child process serves, or say why it does not."""

import http.client
import ssl
import time
from collections.abc import Callable
from pathlib import Path

from deploy.errors import DeployError
from deploy.processes import LogTail, ManagedProcess, last_error

POLL_S = 0.1


def wait_until(
    ready: Callable[[], bool], process: ManagedProcess, log: LogTail, timeout_s: float
) -> None:
    """Return when `ready()` is true.

    Args:
        ready: Asked every 0.1 s.
        process: The process that is to become ready.
        log: What it has written since it was started.
        timeout_s: How long to wait, in seconds.

    Raises:
        DeployError: The process ended (with its last error) or took longer.
    """
    deadline = time.monotonic() + timeout_s
    while not ready():
        if process.mark is None:
            raise DeployError(
                f"{process.name} ended while starting: {last_error(log.read())} (see {process.log})"
            )
        if time.monotonic() > deadline:
            raise DeployError(
                f"{process.name} not ready within {timeout_s:.0f} s: see {process.log}"
            )
        time.sleep(POLL_S)


def healthy(host: str, port: int, ca: Path) -> bool:
    """Whether `GET /health` over TLS, with a certificate of that CA, answers 200."""
    context = ssl.create_default_context(cafile=str(ca))
    connection = http.client.HTTPSConnection(host, port, timeout=5, context=context)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == http.client.OK
    except ssl.SSLCertVerificationError as error:
        raise DeployError(
            f"what listens on {host}:{port} has no certificate of {ca}: {error.verify_message}"
        ) from error
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
