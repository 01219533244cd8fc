"""Reading the numbers of the register of claims, and comparing them with computed ones."""

import re

NUMBER = re.compile(r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+)?(?![\d.]*\d)")


def agrees(printed, value):
    """Return whether a value, rounded as a number is printed, gives that number: 0.0204 as 0.020, 42,685 as 43,000."""
    mantissa, _, power = printed.replace(",", "").partition("e")
    digits = len(mantissa.partition(".")[2])
    if "," in printed and not digits:
        digits -= len(mantissa) - len(mantissa.rstrip("0"))
    return abs(float(printed.replace(",", "")) - value) <= 0.5000001 * 10.0 ** (int(power or 0) - digits)
