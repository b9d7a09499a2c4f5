"""The one exception that is meant for people."""


class CleansetError(Exception):
    """Something a person can put right.

    The message is one line: the object, what was found, what was expected, what to do.
    """
