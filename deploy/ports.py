"""Ports on the loopback interface."""

import errno
import socket

from deploy.errors import DeployError

LOOPBACK = "127.0.0.1"


def free_port() -> int:
    """A port that nothing listens on now; somebody may take it before it is used."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def require_free(port: int, who: str, option: str) -> None:
    """Make sure that `who` can listen on `port`.

    Raises:
        DeployError: Something already does; the message names `option` as the way out.
    """
    if not is_free(port):
        raise DeployError(
            f"port {port} for {who} is in use: "
            f"stop what listens there, or choose another with {option}"
        )


def is_free(port: int) -> bool:
    """Whether `port` can be bound now."""
    with socket.socket() as probe:
        # As servers do: a connection that has just closed does not keep a port in use.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise
        return True
