"""Ports on the loopback interface."""

import errno
import random
import socket

from deploy.errors import DeployError

LOOPBACK = "127.0.0.1"

# Below the ports that systems hand out by themselves (Linux from 32768, others from 49152): a
# client that still tries a server that has stopped must not reach who was handed its port.
_CHOICE = range(20_000, 32_768)


def free_port(*given: int) -> int:
    """A port that nothing listens on now, and none of those `given` to somebody who will.

    Somebody may take it before it is used.

    Raises:
        DeployError: All are in use.
    """
    for port in random.SystemRandom().sample(_CHOICE, len(_CHOICE)):
        if port not in given and is_free(port):
            return port
    raise DeployError(f"all ports from {_CHOICE.start} to {_CHOICE.stop - 1} are in use: stop some")


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
