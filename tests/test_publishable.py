"""What a stranger, a reviewer of research software and GitHub look for in a repository."""

import json
import re
from pathlib import Path

import pytest
import yaml

import emsopt

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(not (ROOT / "README.md").is_file(), reason="needs the repository")
HEALTH = ("CODE_OF_CONDUCT.md", "SUPPORT.md", "SECURITY.md", "PULL_REQUEST_TEMPLATE.md", "ISSUE_TEMPLATE/report.md")


def read(name):
    return (ROOT / name).read_text("utf-8")


@pytest.mark.parametrize("name", ["README.md", *(f".github/{name}" for name in HEALTH), "CONTRIBUTING.md", "LICENSE"])
def test_pages_exist_and_their_links_lead_somewhere(name):
    text = read(name)
    assert len(text) > 200
    assert name != "README.md" or len(text.split()) <= 600
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", text)
    assert [link for link in links if not ((ROOT / name).parent / link).exists()] == []


def test_archives_find_what_they_ask_for():
    code, archive = (json.loads(read(name)) for name in ("codemeta.json", ".zenodo.json"))
    citation = yaml.safe_load(read("CITATION.cff"))
    assert code["version"] == citation["version"] == emsopt.__version__
    assert archive["title"] == citation["title"]
    assert archive["creators"] == citation["authors"]
    dated = rf"^## {re.escape(emsopt.__version__)} \(\d{{4}}-\d\d-\d\d\)$"
    assert re.search(dated, read("CHANGELOG.md"), re.MULTILINE)


def test_a_workflow_runs_the_two_commands_elsewhere():
    jobs = yaml.safe_load(read(".github/workflows/check.yml"))["jobs"]
    assert set(jobs["commands"]["strategy"]["matrix"]["os"]) == {"ubuntu-latest", "macos-latest", "windows-latest"}


def test_papers_are_cited_with_year_and_doi_and_named_in_the_readme():
    papers = yaml.safe_load(read("CITATION.cff"))["references"]
    assert len(papers) == 5
    for paper in papers:
        assert {"title", "authors", "year", "doi"} <= set(paper)
        assert f"*{paper['title']}*" in read("README.md")
