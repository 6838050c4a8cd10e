"""The one error of this package: something the person at the keyboard can put right."""


class DeployError(Exception):
    """A failure that the reader can act on.

    The message is one line that says what is wrong and what to do. The command line prints it
    to stderr and ends with `exit_code`; no stack trace is shown.
    """

    exit_code = 1
