"""Write the counts of the register of claims into README.md and docs/claims.md.

    python data/quote_claims.py

The page of claims has them by paper and verdict, between ``<!-- claims -->`` and ``<!-- end of claims -->``; the README
has a sentence with all of them.
"""

import re
from pathlib import Path

import emsopt as eo

VERDICTS = eo.datasets.VERDICTS
ROOT = Path(__file__).parents[1]
FILES = (ROOT / "README.md", ROOT / "docs" / "claims.md")
BLOCK = re.compile(r"<!-- claims -->\n.*?<!-- end of claims -->", re.DOTALL)
SENTENCE = re.compile(r"Of \d+ statements in them.*?\.$", re.MULTILINE)


def table(head, rows):
    """Return a table in Markdown."""
    cells = [head, ["---"] * len(head), *([str(cell).replace("|", r"\|") for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(row)} |\n" for row in cells)


def counts():
    """Return the table of counts."""
    claims = eo.datasets.load_claims()
    found = claims.groupby(["paper", "verdict"], sort=False).size().unstack(fill_value=0)
    found = found.reindex(columns=VERDICTS, fill_value=0)
    found.loc["all"] = found.sum()
    distinct = (claims["same_as"] == "").groupby(claims["paper"]).sum()
    distinct["all"] = distinct.sum()
    rows = [[paper, row.sum(), distinct[paper], *row] for paper, row in found.iterrows()]
    return table(["paper", "claims", "distinct", *VERDICTS], rows)


def sentence():
    """Return the counts of all papers together as a sentence."""
    found = eo.datasets.load_claims()["verdict"].value_counts()
    parts = ", ".join(f"{found.get(verdict, 0)} {'are ' * (k == 0)}{verdict}" for k, verdict in enumerate(VERDICTS))
    return f"Of {found.sum()} statements in them, {parts}."


def update(text):
    """Return a text with the counts as the register has them now."""
    return SENTENCE.sub(sentence(), BLOCK.sub(f"<!-- claims -->\n\n{counts()}\n<!-- end of claims -->", text))


if __name__ == "__main__":
    for file in FILES:
        file.write_text(update(file.read_text("utf-8")), "utf-8")
