"""The demonstration that `python3 -m deploy demo` runs on a fresh platform."""

from deploy.errors import DeployError
from deploy.stack import Stack


def main(stack: Stack) -> int:
    """Show the platform at work on `stack`, which runs; returns the exit code."""
    raise DeployError(f"there is no demonstration yet (SecAdmin serves at {stack.secadmin_url})")
