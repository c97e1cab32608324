"""The one exception for input that cannot be used."""


class DumpError(Exception):
    """A path, dump or file that cannot be read as what it should be.

    The message is for the user and reads "Cannot <do>: <why, with the value>. <What to do>."
    """
