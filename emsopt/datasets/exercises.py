"""Check answers to the exercises of the notebooks, without revealing the right ones."""

import csv
from hashlib import sha256
from math import floor

from .._files.locate import package_file
from ..errors._validate import choice, finite_number


def check_answer(exercise: str, answer: float | None) -> str:
    """Return "Right." if the answer to an exercise of the notebooks is correct, else a hint.

    Parameters
    ----------
    exercise : str
        Number of the notebook and of the exercise, such as ``"01.3"``.
    answer : float or None
        The answer in the unit that the exercise names; None if there is none yet.

    Examples
    --------
    >>> import emsopt as eo
    >>> eo.datasets.check_answer("00.2", 10)
    'Not yet: try 9 units, 10 units, and so on.'
    """
    with package_file("exercises.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["exercise"]: row for row in csv.DictReader(file)}
    row = rows[choice(exercise, "exercise", rows)]
    if answer is None:
        return "Put your answer in."
    rounded = floor(finite_number(answer, "answer") / float(row["width"]))
    near = {answer_digest(exercise, k) for k in (rounded - 1, rounded, rounded + 1)}  # limits of rounding do not matter
    return "Right." if near & set(row["digests"].split()) else f"Not yet: {row['hint']}."


def answer_digest(exercise: str, rounded: int) -> str:
    """Return the stored hash of an answer that was divided by the tolerance of the exercise and rounded down."""
    return sha256(f"{exercise} {rounded}".encode()).hexdigest()[:16]
