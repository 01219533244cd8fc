"""Write the counts of the register of claims into README.md.

    python data/quote_claims.py

They stand between ``<!-- claims -->`` and ``<!-- end of claims -->``, by paper and verdict.
"""

import re
from pathlib import Path

from emsopt.datasets import VERDICTS, load_claims

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"<!-- claims -->\n.*?<!-- end of claims -->", re.DOTALL)


def table(head, rows):
    """Return a table in Markdown."""
    cells = [head, ["---"] * len(head), *([str(cell).replace("|", r"\|") for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(row)} |\n" for row in cells)


def counts():
    """Return the table of counts."""
    claims = load_claims()
    found = claims.groupby(["paper", "verdict"], sort=False).size().unstack(fill_value=0)
    found = found.reindex(columns=VERDICTS, fill_value=0)
    found.loc["all"] = found.sum()
    distinct = (claims["same_as"] == "").groupby(claims["paper"]).sum()
    distinct["all"] = distinct.sum()
    rows = [[paper, row.sum(), distinct[paper], *row] for paper, row in found.iterrows()]
    return table(["paper", "claims", "distinct", *VERDICTS], rows)


def update(text):
    """Return a text with the counts as the register has them now."""
    return BLOCK.sub(f"<!-- claims -->\n\n{counts()}\n<!-- end of claims -->", text)


if __name__ == "__main__":
    README.write_text(update(README.read_text("utf-8")), "utf-8")
