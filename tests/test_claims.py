"""The register of the papers' claims: every row has a verdict, a reason, and evidence that exists and runs."""

import ast
import functools
import itertools
import json
import re
from pathlib import Path

import pandas as pd
import pytest
from refusals import refused
from register_numbers import NUMBER, agrees

import emsopt as eo
from emsopt._files import locate

ROOT = Path(__file__).parents[1]
PAPERS = ("server locations", "server locations, version one", "navigation", "bocvs", "boke")
VERDICTS = eo.datasets.VERDICTS
CLAIMS = eo.datasets.load_claims()
STUDIES = sorted({path.name.split(".")[0] for path in locate.package_file("studies").iterdir()})
WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
NUMBERS = {word: k for k, word in enumerate(WORDS)}
NUMBERS |= {"fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40, "sixty": 60}
COUNT = rf"(\d[\d,]*|{'|'.join(NUMBERS)})"
RUNS = re.compile(rf"\b{COUNT} (?:(?:random|stored|paired|independent) )?(?:seeds|runs|cities)\b", re.IGNORECASE)
SHARE = re.compile(rf"\b{COUNT} of {COUNT}\b", re.IGNORECASE)


def is_skipped(node):
    """Return whether a test, or a statement in a module, says that tests are skipped or fail, without a condition."""
    if isinstance(node, ast.FunctionDef):
        return any(map(is_skipped, [*node.decorator_list, *node.body]))
    words = ast.unparse(node).removeprefix("pytestmark = ").lstrip("[")
    return re.match(r"(pytest\.)?(mark\.)?(skip|xfail)\b", words) is not None


@functools.cache
def running_tests(file):
    """Return the tests of a file that run, if only where their data are found: their code by name."""
    tree = ast.parse((ROOT / file).read_text("utf-8")).body
    tests = [node for node in tree if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    module_skipped = any(is_skipped(node) for node in tree if not isinstance(node, ast.FunctionDef))
    return {node.name: ast.unparse(node) for node in tests if not module_skipped and not is_skipped(node)}


@functools.cache
def sections(file):
    """Return the code below each heading of a notebook and its subheadings, by anchor."""
    code, above = {}, []
    for cell in json.loads((ROOT / file).read_text("utf-8"))["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "code":
            code |= {anchor: code.get(anchor, "") + text + "\n" for _, anchor in above}
            continue
        for rank, heading in re.findall(r"^(#+) (.+?)\s*$", text, re.MULTILINE):
            above = [(r, anchor) for r, anchor in above if r < len(rank)] + [(len(rank), heading.replace(" ", "-"))]
    return code


def evidence_of(claim):
    """Return the code of a claim's evidence, and "" if it does not exist, never runs or asserts nothing."""
    file, _, test = claim.evidence.partition("::")
    if test:
        return running_tests(file).get(test, "") if (ROOT / file).is_file() else ""
    file, _, section = claim.evidence.partition("#")
    code = sections(file).get(section, "") if (ROOT / file).is_file() else ""
    return code if re.search(r"^assert ", code, re.MULTILINE) else ""


def test_columns_blocks_of_papers_places_and_verdicts_are_those_described():
    assert tuple(CLAIMS["paper"].unique()) == PAPERS
    assert (CLAIMS["paper"] != CLAIMS["paper"].shift()).sum() == len(PAPERS)
    assert CLAIMS["paper"].value_counts().min() >= 30
    columns = ["paper", "place", "claim", "theirs", "ours", "error", "verdict", "why", "evidence", "same_as"]
    assert list(CLAIMS) == columns
    assert not CLAIMS.duplicated(["paper", "place"]).any()
    assert (CLAIMS[["place", "claim"]] != "").all(axis=None)
    assert (CLAIMS.map(str.strip) == CLAIMS).all(axis=None)
    assert set(CLAIMS["verdict"]) <= set(VERDICTS)
    unexplained = CLAIMS[(CLAIMS["why"] == "") & (CLAIMS["verdict"] != "reproduced")]
    assert unexplained[["paper", "place"]].values.tolist() == []


def test_claims_of_both_versions_are_told():
    """Column `same_as`: a claim of version two, with the same verdict unless `why` speaks of the other version."""
    first, second = (CLAIMS[CLAIMS["paper"] == paper].set_index("place") for paper in (PAPERS[1], PAPERS[0]))
    assert (CLAIMS.loc[CLAIMS["paper"] != PAPERS[1], "same_as"] == "").all()
    pairs = first[first["same_as"] != ""]
    assert len(pairs) > 50
    assert set(pairs["same_as"]) <= set(second.index)
    differ = pairs[pairs["verdict"] != second["verdict"].reindex(pairs["same_as"]).to_numpy()]
    assert differ.index[~differ["why"].str.contains("second version")].tolist() == []


@pytest.mark.skipif(not (ROOT / "notebooks").exists(), reason="the notebooks are not installed with the package")
def test_all_evidence_exists_and_asserts():
    """Nothing is run here: the tests run beside this one, and the notebooks by nbval."""
    form = r"tests/\S+\.py::test_\w+|notebooks/\w+\.ipynb#\S+"
    assert [c.evidence for c in CLAIMS.itertuples() if not (re.fullmatch(form, c.evidence) and evidence_of(c))] == []


def texts(trees):
    """Return the texts in pieces of code, and patterns of those that they compose."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    plain = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    composed = [node.values for node in nodes if isinstance(node, ast.JoinedStr)]
    parts = [[re.escape(v.value) if isinstance(v, ast.Constant) else "(.+?)" for v in values] for values in composed]
    return plain, [re.compile("".join(p)) for p in parts if any(re.search(r"[A-Za-z]{3}", text) for text in p)]


def is_compared(place, plain, patterns):
    """Return whether a file that has these texts can name a place: as it is, or composed of words that it has."""
    gaps = [found.groups() for found in (pattern.fullmatch(place) for pattern in patterns) if found]
    return place in plain or any(all(len(g) < 6 or any(g in text for text in plain) for g in words) for words in gaps)


def constants(tree):
    """Return the values that a module gives to names, as code: ``A, B = "a", "b"`` gives two."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Tuple):
            found |= {name.id: value for name, value in zip(target.elts, node.value.elts, strict=True)}
        elif isinstance(node, ast.Assign) and isinstance(target, ast.Name):
            found[target.id] = node.value
    return found


def literals(claim):
    """Return the numbers in the code of a claim's evidence and in its module's constants that it uses; no docstrings."""
    file, code = claim.evidence.partition("::")[0], re.sub(r"^[%!].*", "", evidence_of(claim), flags=re.MULTILINE)
    known = constants(ast.parse((ROOT / file).read_text("utf-8"))) if file.endswith(".py") else {}
    nodes = [*ast.walk(ast.parse(code))]
    for name in {node.id for node in nodes if isinstance(node, ast.Name)} & set(known):
        nodes += ast.walk(known[name])
    values = [node.value for node in nodes if isinstance(node, ast.Constant)]
    shares = [SHARE.fullmatch(value) for value in values if isinstance(value, str)]  # "3 of 40" in a list of cases
    numbers = [value for value in values if type(value) in (int, float)]
    return numbers + [count(number) for share in filter(None, shares) for number in share.groups()]


def count(text):
    """Return a count given in digits or as a word."""
    return NUMBERS[text.lower()] if text.lower() in NUMBERS else int(text.replace(",", ""))


def unbound(claims):
    """Return the places of rows that no test reads although their evidence lacks a decimal or share of column `ours`."""
    sources = [f.read_text("utf-8") for f in (ROOT / "tests").rglob("test_*.py") if "test_claims" not in f.name]
    readers = [texts([ast.parse(source)]) for source in sources if re.search(r"\b(claim|load_claims)\(", source)]
    free = []
    for claim in claims.itertuples():
        own = re.sub(r"(Theorem|Section) \d\.\d|\(\d\.\d+\)", "", claim.ours)  # (3.2) is an equation's
        decimals = [number.lstrip("-") for number in NUMBER.findall(own) if "." in number or "e-" in number]
        decimals += [str(count(number)) for share in SHARE.findall(own) for number in share]
        if not decimals or any(claim.paper in of[0] and is_compared(claim.place, *of) for of in readers):
            continue
        scales = (1, 100) if re.search("%|points", claim.ours) else (1,)
        values = [v * scale for v in literals(claim) for scale in scales]
        if not all(any(agrees(number, value) for value in values) for number in decimals):
            free.append((claim.paper, claim.place))
    return free


@pytest.mark.skipif(not (ROOT / "notebooks").exists(), reason="the notebooks are not installed with the package")
def test_our_decimals_are_held_by_a_test():
    """Either a test reads the row, or the row's evidence has all of its decimals and shares ("3 of 40").

    Decimals in per cent may stand as shares there.
    """
    assert unbound(CLAIMS) == []


def studies_of(claim):
    """Return the stored studies that a claim's evidence reads, also by functions and fixtures of its file."""
    (file, _, test), code, seen = claim.evidence.partition("::"), "", set()
    if test:
        tree = ast.parse((ROOT / file).read_text("utf-8")).body
        functions, new = {f.name: ast.unparse(f) for f in tree if isinstance(f, ast.FunctionDef)}, {test}
        while new := (new & set(functions)) - seen:
            seen |= new
            code += (found := "\n".join(functions[name] for name in new))
            new = set(re.findall(r"\w+", found))
    read = re.findall(r"load_study\(f?['\"]([^'\"]+)['\"]", code or evidence_of(claim))
    return [name for name in STUDIES if any(re.fullmatch(re.sub(r"\{.*?\}", r"\\w+", each), name) for each in read)]


@functools.cache
def run_counts(study):
    """Return how many runs a study has, together and for each value of its other columns; none if it has averages."""
    table = eo.datasets.load_study(study)
    runs = [name for name in ("seed", "run") if name in table]
    is_number = lambda name: pd.api.types.is_numeric_dtype(table[name])
    # numbers of more than 15 values are measured, but for rows of a paper's table
    others = [n for n in table if n not in runs and (not is_number(n) or table[n].nunique() <= 15 or n == "row")]
    cases = table[runs + others].drop_duplicates()
    groups = [some for k in {1, 2, 3, 4, len(others)} for some in itertools.combinations(others, k)] if runs else []
    return {len(cases)}.union(*(cases.groupby(list(some)).size() for some in groups)) if runs else set()


@pytest.mark.skipif(not (ROOT / "notebooks").exists(), reason="the notebooks are not installed with the package")
def test_numbers_of_runs_are_those_of_the_studies():
    """In all columns: "ten seeds", "3 of 40 runs" (of which 40 is checked here). Say "6 of 10 cities", not "six cities"."""
    wrong = []
    for claim in CLAIMS.itertuples():
        said = [count(number) for text in (claim.ours, claim.error, claim.why) for number in RUNS.findall(text)]
        counts = set().union(*map(run_counts, studies_of(claim))) if said else set()
        wrong += [(claim.paper, claim.place, number) for number in said if counts and number not in counts]
    assert wrong == []


def test_a_printed_tolerance_is_not_widened():
    """A row with "1e-8" rests on no `assert_allclose` whose relative tolerance, 1e-7 unless it is given, is added to it."""
    wide = []
    for claim in CLAIMS[(CLAIMS["ours"] + CLAIMS["error"]).str.contains("1e-")].itertuples():
        calls = [node for node in ast.walk(ast.parse(evidence_of(claim))) if isinstance(node, ast.Call)]
        given = [{k.arg for k in node.keywords} for node in calls if ast.unparse(node.func).endswith("assert_allclose")]
        wide += [claim.place] * any("atol" in names and "rtol" not in names for names in given)
    assert wide == []


def test_claims_are_filtered_by_paper_and_place():
    tables = eo.datasets.load_claims("server locations", "Table 1")
    assert set(tables["paper"]) == {"server locations"}
    assert len(tables) > 1
    assert tables["place"].str.startswith("Table 1").all()
    both = eo.datasets.load_claims("navigation", ("Table 1", "Figure 1"))
    assert set(both["place"].str[:7]) == {"Table 1", "Figure "}
    refused("`paper` must be one of", eo.datasets.load_claims, "location")
    refused("place of 'boke'.*got 'Table 99'", eo.datasets.load_claims, "boke", "Table 99")


def test_the_readme_and_the_page_of_claims_have_the_counts_of_the_register(script):
    quote = script("data/quote_claims.py")
    readme, page = (file.read_text("utf-8") for file in quote.FILES)
    assert [quote.update(text) for text in (readme, page)] == [readme, page], "run: python data/quote_claims.py"
    assert len(quote.SENTENCE.findall(readme)) == len(quote.BLOCK.findall(page)) == 1
    found = CLAIMS["verdict"].value_counts()
    distinct = (CLAIMS["same_as"] == "").sum()
    assert f"| all | {len(CLAIMS)} | {distinct} | {' | '.join(str(found[v]) for v in VERDICTS)} |" in page


def test_the_site_has_every_claim_and_a_quoted_one_that_is_gone_is_named(script):
    claims = script("docs/_claims.py")
    assert claims.quoted(["navigation | Table 2"]).count("<tr data-verdict") == 1
    with pytest.raises(ValueError, match="The claim 'Table 9' of navigation is quoted, but it is not in the register"):
        claims.quoted(["navigation | Table 2 | Table 9"])
    assert claims.register().count("<tr data-verdict") == len(CLAIMS)
