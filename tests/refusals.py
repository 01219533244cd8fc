"""Input that is refused, in one line: ``refused("do not fit", p_median, city, 9)``."""

import pytest

from emsopt.errors import InputError


def refused(words, call, /, *given, **options):
    """Check that a call ends in an `InputError` whose message has these words (a regular expression)."""
    __tracebackhide__ = True
    with pytest.raises(InputError, match=words):
        call(*given, **options)
