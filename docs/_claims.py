"""The register of the papers' claims in HTML."""

import re
from html import escape
from pathlib import Path

from emsopt.datasets import VERDICTS, load_claims

COLUMNS = ("place", "claim", "paper", "here", "verdict")


def slug(heading):
    """Return the anchor of a heading, as Sphinx makes it."""
    return re.sub(r"^[-0-9]+|-+$", "", re.sub(r"[^a-z0-9]+", "-", heading.lower()))


def register():
    """Return the whole register: controls, and a table per paper."""
    options = "".join(f"<option>{verdict}</option>" for verdict in VERDICTS)
    choice = f'<label>Verdict <select name="verdict"><option value="">all</option>{options}</select></label>'
    words = '<label>Words <input type="search" name="words"></label>'
    parts = [f'<form class="claims-filter">{words} {choice} <output></output></form>']
    for paper, rows in load_claims().groupby("paper", sort=False):
        summary = f"<summary>{escape(paper)} <span>{len(rows)}</span></summary>"
        parts.append(f'<details class="claims" id="{slug(paper)}">{summary}{table(rows)}</details>')
    return "\n".join(parts)


def quoted(lines):
    """Return some claims: of each line ``PAPER | PLACE | PLACE ...``."""
    found = []
    for line in lines:
        paper, *places = line.split(" | ")
        rows = load_claims(paper).set_index("place", drop=False)
        if gone := [place for place in places if place not in rows.index]:
            raise ValueError(f"The claim '{gone[0]}' of {paper} is quoted, but it is not in the register.")
        found.append(f"<p>{escape(paper)}</p>{table(rows.loc[places])}")
    return "\n".join(found)


def table(claims):
    """Return claims as a table."""
    head = "".join(f"<th>{title}</th>" for title in COLUMNS)
    body = "".join(row(claim) for claim in claims.itertuples())
    return f"<table class='table claims'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def row(claim):
    """Return a claim as a row of a table."""
    file, _, section = claim.evidence.partition("#")
    evidence = f"<code>{escape(claim.evidence)}</code>"
    if section:
        address = f"generated/notebooks/{Path(file).stem}.html#{slug(section)}"
        evidence = f"<a href='{address}'>{escape(section.replace('-', ' '))}</a>"
    here = claim.ours + (f" (error: {claim.error})" if claim.error else "")
    why = f"<b>{claim.verdict}</b>. {escape(claim.why)} <small>{evidence}</small>"
    texts = [*map(escape, (claim.place, claim.claim, claim.theirs, here)), why]
    return f"<tr data-verdict='{claim.verdict}'>{''.join(f'<td>{text}</td>' for text in texts)}</tr>"
