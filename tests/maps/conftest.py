"""The town that most tests of this folder draw."""

from smallville import both, city, doubled  # noqa: F401
