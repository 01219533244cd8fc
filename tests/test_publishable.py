"""What a stranger, a reviewer of research software and GitHub look for in a repository."""

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

import emsopt

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(not (ROOT / "README.md").is_file(), reason="needs the repository")
HEALTH = ("CODE_OF_CONDUCT.md", "SUPPORT.md", "SECURITY.md", "PULL_REQUEST_TEMPLATE.md", "ISSUE_TEMPLATE/report.md")
PLACES = ("*.*", "docs/*.md", ".github/**/*.*", ".ci/*", "binder/*", "benchmarks/*.*", "data/*.*", "emsopt/**/*.py")


def read(name):
    return (ROOT / name).read_text("utf-8")


def test_the_readme_is_short_and_says_first_what_it_is_for_and_for_whom():
    readme = read("README.md")
    assert len(readme.split()) <= 600
    badges = re.findall(
        r"\[!\[\w+\]\((\S+?)\)\]", readme
    )  # said by those who know, and not where the site is read offline
    home = tomllib.loads(read("pyproject.toml"))["project"]["urls"]["Homepage"]
    assert badges == [f"{home}/actions/workflows/check.yml/badge.svg", "https://mybinder.org/badge_logo.svg"]
    assert (ROOT / ".github/workflows/check.yml").is_file()
    assert ':start-after: "<!-- badges -->"' in read("docs/index.md")
    first = readme.split("\n\n")[1]
    assert re.search(r"ambulances .* should wait", first)
    assert all(who in first for who in ("analysts", "lecturers", "reviewers", "researchers"))
    assert all(name in readme for name in ("mybinder.org", "spopt", "lokigi", "JEMSS", "BoTorch", "git clone"))


@pytest.mark.parametrize("name", ["README.md", *(f".github/{name}" for name in HEALTH), "CONTRIBUTING.md", "LICENSE"])
def test_pages_exist_and_their_links_lead_somewhere(name):
    text = read(name)
    assert len(text) > 200
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", text)
    assert [link for link in links if not ((ROOT / name).parent / link).exists()] == []


def test_the_package_names_its_authors_addresses_and_audience():
    project = tomllib.loads(read("pyproject.toml"))["project"]
    assert set(project["urls"]) == {"Homepage", "Documentation", "Issues", "Changelog"}
    assert project["authors"]
    assert project["maintainers"]
    assert all((ROOT / file).is_file() for file in project["license-files"])
    classifiers = project["classifiers"]
    pythons = [c.rsplit(" ", 1)[1] for c in classifiers if re.fullmatch(r".* :: 3\.\d+", c)]
    assert project["requires-python"] == f">={pythons[0]}"
    assert f"Python {pythons[0]} to {pythons[-1]}" in read(".github/SUPPORT.md")


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


def test_blanks_are_those_that_the_page_of_the_project_lists():
    """Once they are filled in, no row has a blank and no file needs one."""
    rows = re.findall(r"^\| `(OWNER/NAME|CONTACT)` \|.*\| (.*) \|$", read("docs/project.md"), re.MULTILINE)
    listed = {(blank, file) for blank, files in rows for file in re.findall(r"`(.*?)`", files)}
    files = {path for place in PLACES for path in ROOT.glob(place) if path.is_file()} - {ROOT / "docs" / "project.md"}
    blanks = re.compile(r"\bOWNER(?:\.github\.io)?/NAME\b|\bCONTACT\b")
    found = {
        (blank.replace(".github.io", ""), path.relative_to(ROOT).as_posix())
        for path in files
        for blank in blanks.findall(path.read_text("utf-8", errors="ignore"))
    }
    assert found == listed
