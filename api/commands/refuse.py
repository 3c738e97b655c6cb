"""What the command line refuses by itself."""

from __future__ import annotations


class Refused(Exception):
    """One line for the user; the command ends with status 2."""
