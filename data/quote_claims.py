"""Write counts and rows of the register of claims into README.md, so that they stand in one place only.

    python data/quote_claims.py

A block of the README from ``<!-- claims -->`` to ``<!-- end of claims -->`` holds the counts by paper and verdict. One
that begins with ``<!-- claims: PAPER | PLACE | PLACE -->`` holds the rows of these places.
"""

import re
from pathlib import Path

from emsopt.datasets import VERDICTS, load_claims

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"<!-- claims(?:: (?P<paper>.+?) \| (?P<places>.+?))? -->\n.*?<!-- end of claims -->", re.DOTALL)


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
    rows = [[paper, row.sum(), *row] for paper, row in found.iterrows()]
    return table(["paper", "claims", *VERDICTS], rows)


def quoted(paper, places):
    """Return the table of some claims of a paper."""
    claims, rows = load_claims(paper).set_index("place"), []
    for place in places:
        if place not in claims.index:
            raise SystemExit(f"README.md quotes the claim '{place}' of {paper}, which is not in the register.")
        row = claims.loc[place]
        rows.append([f"{place}: {row.claim}", row.theirs, row.ours, f"{row.verdict}. {row.why}".rstrip(". ") + "."])
    return table(["claim", "paper", "here", "verdict"], rows)


def update(text):
    """Return a text with all blocks as the register has them now."""

    def block(found):
        paper, places = found["paper"], found["places"]
        begin = found[0].split("\n", 1)[0]
        return f"{begin}\n\n{quoted(paper, places.split(' | ')) if paper else counts()}\n<!-- end of claims -->"

    return BLOCK.sub(block, text)


if __name__ == "__main__":
    README.write_text(update(README.read_text("utf-8")), "utf-8")
