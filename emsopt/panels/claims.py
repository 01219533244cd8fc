"""The claims panel: a table of the papers' claims with filters and links to the evidence."""

from __future__ import annotations

from html import escape

import pandas as pd
from ipywidgets import Dropdown, Text

from ..datasets import VERDICTS, load_claims
from ..errors import _validate
from ._panel import Panel
from ._widgets import Markup, control, table

ALL_CHOICE = "all"
COLUMN_WIDTHS = {"claim": 15, "paper": 6, "here": 14, "verdict": 16}  # of the columns, em
EXPLANATION = (
    "What the papers state, and what this package found. Each row ends with a link to the test or the notebook section "
    "that shows it. help(eo.datasets.load_claims) explains the papers' names and the verdicts."
)


def claims_panel(paper: str = ALL_CHOICE, *, verdict: str = ALL_CHOICE) -> Panel:
    """Return a panel that shows the register of the papers' claims (`load_claims`) as a table with filters.

    Links are relative to the folder ``notebooks`` of a checkout. Raise if paper or verdict is unknown.

    Parameters
    ----------
    paper, verdict : str
        Initial choices: "all", or a paper in `emsopt.datasets.load_claims` and one of `emsopt.datasets.VERDICTS`.

    Returns
    -------
    Panel
        ``panel.compute()`` returns the claims that are shown, as a DataFrame.

    Examples
    --------
    >>> import emsopt as eo
    >>> set(eo.panels.claims_panel("boke", verdict="refuted").compute()["verdict"])
    {'refuted'}
    """
    return _ClaimsPanel(paper, verdict)


class _ClaimsPanel(Panel):
    """The panel that `claims_panel` returns."""

    def __init__(self, paper: str, verdict: str) -> None:
        self.claims = load_claims()
        papers, verdicts = (ALL_CHOICE, *self.claims["paper"].unique()), (ALL_CHOICE, *VERDICTS)
        _validate.choice(paper, "paper", papers)
        _validate.choice(verdict, "verdict", verdicts)
        controls = {
            "paper": control(Dropdown, paper, "Paper", "Claims of this paper only", options=papers),
            "verdict": control(Dropdown, verdict, "Verdict", "Claims with this verdict only", options=verdicts),
            "words": control(Text, "", "Words", "Claims that contain all of these words, as in: table 1"),
        }
        super().__init__(controls)
        layout = "paper verdict words | message | figures"
        self.arrange_widgets("What the papers claim, and what holds", EXPLANATION, layout)
        self.respond()

    def compute(self) -> pd.DataFrame:
        """Return the claims that match the controls."""
        at, claims = self.values, self.claims
        for name, wanted in (("paper", at.paper), ("verdict", at.verdict)):
            if wanted != ALL_CHOICE:
                claims = claims[claims[name] == wanted]
        for word in at.words.lower().split():
            claims = claims[claims.map(lambda text, word=word: word in text.lower()).any(axis=1)]
        return claims

    def draw(self, answer: pd.DataFrame) -> str:
        several = self.values.paper == ALL_CHOICE
        counts = answer["verdict"].value_counts().reindex(VERDICTS, fill_value=0)
        caption = f"{len(answer)} claims: {', '.join(f'{count} {verdict}' for verdict, count in counts.items())}."
        rows = []
        for claim in answer.to_dict("records"):
            title = f"{claim['paper']}: {claim['place']}" if several else claim["place"]
            here = claim["ours"] + (f" (error: {claim['error']})" if claim["error"] else "")
            file, _, test = claim["evidence"].partition("::")  # links are relative to the folder of the notebooks
            link = f"<a href='../{escape(file)}' title='{escape(claim['evidence'])}' target='_blank'>"
            link += f"{'test' if test else 'notebook'}</a>"
            verdict = f"<b>{claim['verdict']}</b>. {escape(claim['why'])} {link}"
            texts = (escape(claim["claim"]), escape(claim["theirs"]), escape(here), verdict)
            cells = [_wrapping_cell(text, em) for text, em in zip(texts, COLUMN_WIDTHS.values(), strict=True)]
            rows.append((_wrapping_cell(escape(title), 9), cells))
        self.show(figures=table(caption, COLUMN_WIDTHS, rows))
        return "" if len(answer) else "No claim matches: use fewer words, or choose all papers and verdicts."


def _wrapping_cell(html: str, em: int) -> Markup:
    """Return a table cell with this HTML, ``em`` wide (in em), whose text wraps."""
    return Markup(f"<div style='white-space:normal;text-align:left;width:{em}em'>{html}</div>")
