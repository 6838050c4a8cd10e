"""The measurements that `python3 -m deploy bench` makes on a fresh platform."""

from deploy.errors import DeployError
from deploy.stack import Stack


def main(stack: Stack, arguments: list[str]) -> int:
    """Measure `stack`, which runs; returns the exit code."""
    raise DeployError(f"there are no benchmarks yet ({stack.secadmin_url}, {arguments})")
