"""The claims panel: it shows the rows of the register that match, all of them, with links that lead somewhere."""

import html
import re
from pathlib import Path

import pytest

import emsopt as eo
from emsopt import panels

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


def titles(panel):
    found = re.findall(r"<th scope='row'><div[^>]*>(.*?)</div></th>", panel.refs["figures"].value)
    return [html.unescape(title) for title in found]


def test_it_begins_with_all_claims_and_filters_by_paper_verdict_and_all_words():
    panel, claims = panels.claims_panel(), eo.datasets.load_claims()
    assert titles(panel) == (claims["paper"] + ": " + claims["place"]).tolist()
    said = f"{len(claims)} claims: {(claims['verdict'] == 'reproduced').sum()} reproduced"
    assert said in panel.refs["figures"].value
    panel = panels.claims_panel("boke", verdict="in part")
    assert titles(panel) == eo.datasets.load_claims("boke").query("verdict == 'in part'")["place"].tolist()
    panel.refs["verdict"].value = "all"
    panel.refs["words"].value = "TABLE 1  kr-ucb"
    shown = panel.compute()
    assert 0 < len(shown) < 10
    assert titles(panel) == shown["place"].tolist()
    assert all(word in " ".join(row).lower() for row in shown.to_numpy() for word in ("table", "1", "kr-ucb"))
    panel.refs["words"].value = "nowhere to be found"
    assert "No claim matches" in panel.refs["message"].value


@pytest.mark.skipif(not NOTEBOOKS.exists(), reason="the notebooks are not installed with the package")
def test_links_lead_to_files_of_the_checkout():
    links = re.findall(r"href='([^'#]+)", panels.claims_panel().refs["figures"].value)
    assert len(links) == len(eo.datasets.load_claims())
    assert all((NOTEBOOKS / html.unescape(link)).is_file() for link in set(links))
