"""The dashboard without a kernel or a browser: it says what the package says, and nothing ends in a traceback."""

import base64
import html
import io
import re
import tempfile

import numpy as np
import pandas as pd
import pytest
from ipywidgets.widgets import widget
from shown import cells
from uploads import chosen

import emsopt as eo
from emsopt import DeploymentSpace
from emsopt.evaluators import evaluate_all, exact_hypercube, p_median
from emsopt.panels import _uploads, _widgets
from emsopt.planning.settings import OPTIONS


@pytest.fixture(scope="module")
def shared():
    return eo.panels.dashboard()


@pytest.fixture
def refs(shared):
    """The dashboard with St. Paul as it begins, and an empty table."""
    shared.refs["tabs"].value = "Districts"
    for name, value in {"city": "Random grid city", "sites_count": 4}.items():
        shared.refs[name].value = value
    shared.refs["city"].value = "St. Paul"
    shared.refs["label"].value = ""
    shared.refs["empty"].click()
    return shared.refs


def ticked(refs):
    return [site for site, box in enumerate(refs["sites"]) if box.value]


def links(refs, name="links"):
    """Return the files behind the links in an output, by name."""
    found = re.findall(r"download='(.*?)' href='data:[a-z/]+;base64,(.*?)'", refs[name].value)
    return {file: base64.b64decode(content) for file, content in found}


def tab(refs, name, title):
    """Return the output of this name after choosing its tab."""
    refs["tabs"].value = title
    return refs[name]


def test_figures_are_those_of_the_package(refs, city, drawn):
    best, median = evaluate_all(city, 9, "approximate").best_sites, p_median(city, 9).sites
    expected = [exact_hypercube(city, sites) for sites in (median, best, median)]
    shown = cells(refs["figures"])
    assert shown["mean response (min)"] == [f"{e.mean_response:.3f}" for e in expected]
    assert shown["responses of 8 min or more"] == [f"{e.late_fraction(8.0):.2%}" for e in expected]
    assert shown["busiest unit"] == [f"{e.utilizations.max():.1%}" for e in expected]
    assert "9,691 deployments" in refs["figures"].value
    assert len(cells(tab(refs, "alternatives", "Alternatives"))) == 5
    assert [view["name"] for view in refs["map"].views] == ["yours", "optimum", "p-median"]
    assert tab(refs, "busy", "Utilisation").value.count("<span style=") == 27
    assert len(cells(tab(refs, "districts", "Districts"))) == 71
    assert refs["answer"].value == refs["message"].value == ""


def test_every_control_changes_the_answers(refs):
    moves = {"load": 2.0, "units": 8, "objective": "late", "threshold": 7.0, "evaluator": "simulation"}
    for name, value in (moves | {"pinned": (3, 12), "closed": (0, 5)}).items():
        before = refs["figures"].value, refs["map"].views
        refs[name].value = value
        assert refs["figures"].value != before[0], name
        assert refs["map"].views != before[1] or name == "pinned", name  # there may be units there already
    refs["count"].value = 3
    assert len(cells(tab(refs, "alternatives", "Alternatives"))) == 3


def test_pinned_and_closed_sites_bind_the_optimum_and_are_said_of_ones_own(refs, city):
    refs["evaluator"].value = "approximate"
    refs["pinned"].value, refs["closed"].value = (8,), (0, 5)
    spaces = (DeploymentSpace(city, 9, pinned=pinned, closed=(0, 5)) for pinned in ((8,), ()))
    best, free = (evaluate_all(city, space, "approximate") for space in spaces)
    assert best.values.min() > free.values.min()
    assert cells(refs["figures"])["mean response (min)"][1] == f"{best.values.min():.3f}"
    names = city.site_names  # one's own is the p-median, with a unit at 0 and none at 8
    assert f"no unit at {names[8]}, which is to keep one" in refs["answer"].value
    assert f"a unit at {names[0]}, which is closed" in refs["answer"].value
    refs["optimum"].click()
    assert (ticked(refs), refs["answer"].value) == (best.best_sites.tolist(), "")
    refs["pinned"].value = (0,)
    assert "both pinned and closed" in refs["answer"].value
    assert (refs["figures"].value, refs["map"].layout.visibility) == ("", "hidden")
    refs["closed"].value = ()
    assert refs["map"].layout.visibility == "visible"


def test_a_click_on_the_map_adds_a_unit_and_one_on_a_full_place_takes_all(refs):
    """Three places of the 14 hold two units, the third of them at sites 2 and 7, where none is now."""
    shown, before = refs["map"], ticked(refs)
    assert (len(shown.scene["city"]["places"]), shown.edit) == (14, "yours")
    counts = []
    for _ in range(3):
        shown.press(2)
        counts.append(len([site for site in ticked(refs) if site in (2, 7)]))
    assert (counts, ticked(refs)) == ([1, 2, 0], before)
    refs["city"].value, refs["units"].value = "Random grid city", 1
    refs["p_median"].click()
    (only,) = ticked(refs)
    refs["map"].press(only)
    assert ticked(refs) == [only]  # the last unit stays


CITY = {
    "city.json": '{"name": "Mine", "speed_kmh": 40}',
    "atoms.csv": "name,arrival_rate,lon,lat\na,1,-30,45\nb,2,-30.1,45.1\n",
    "sites.csv": "name,turnout_min,service_min,lon,lat\ns,1,40,-30,45\nt,1,40,-30.1,45\nu,1,40,-30,45.1\n",
}
LOG = {
    "my_calls.csv": "time,lon,lat,service_min\n" + "2025-03-14 16:05,-30.0,45.0,30\n2025-03-15 10:00,-30.1,45.05,50\n",
    "my_stations.csv": "name,lon,lat,turnout_min\ns,-30,45,1\nt,-30.1,45,1\n",
}


def upload(files):
    return chosen(files.items())


def read(refs, files):
    refs["city"].value = "Your own files"
    refs["files"].value = upload(files)
    refs["read"].click()


def test_files_of_a_city_and_of_a_log_are_read(refs, tmp_path, city):
    """Whichever file comes first and whatever it is called."""
    files = {"january.csv": LOG["my_calls.csv"].replace(",", ";"), "houses.csv": LOG["my_stations.csv"]}
    for order in (1, -1):
        read(refs, dict(list(files.items())[::order]))
        assert "Read Your city: 2 atoms, 2 sites" in refs["message"].value
        assert "few calls" in refs["trust"].value
    read(refs, CITY)
    assert "Read Mine: 2 atoms, 3 sites" in refs["message"].value
    assert "few calls" not in refs["trust"].value
    assert refs["figures"].value
    city.save(tmp_path / "city")
    read(refs, {path.name: path.read_bytes() for path in (tmp_path / "city").iterdir()})
    assert "71 atoms, 17 sites" in refs["message"].value


def test_logs_of_several_months_are_read_together_by_the_options_of_the_command(refs, shared):
    """As `read_calls` reads a list; unreadable rows are left out unless the tick refuses them, and files of macOS are."""
    times = pd.date_range("2025-01-01", periods=60, freq="D").astype(str)
    calls = pd.DataFrame({"time": times, "lon": 0.0, "lat": 0.0, "service_min": "30", "kind": ["fire", "medical"] * 30})
    x, y = eo._files.geography.load_extra("pyproj").Transformer.from_crs(4326, 3857, always_xy=True).transform(-30, 45)
    calls["lon"], calls["lat"] = x, y
    calls.loc[5, "service_min"] = "long"
    months = {f"{name}.csv": part.to_csv(index=False) for name, part in (("jan", calls[:31]), ("feb", calls[31:]))}
    files = months | {"houses.csv": LOG["my_stations.csv"], "._jan.csv": b"Mac OS X"}
    refs["where"].value, refs["crs"].value = "kind == 'medical'", "EPSG:3857"
    read(refs, files)
    log = shared.bench.opened.log.calls
    assert (len(log), log.not_chosen, log.left_out) == (29, 30, {"readable cells": 1})
    assert log.locations[0] == pytest.approx((-30, 45))
    assert "calls: jan.csv, feb.csv; stations: houses.csv" in refs["trust"].value
    refs["refuse_bad"].value = True
    refs["again"].click()
    assert "jan.csv" in refs["message"].value
    assert "row 6" in refs["message"].value
    for name in ("where", "crs"):
        refs[name].value = ""
    refs["refuse_bad"].value = False


def test_files_are_named_as_the_user_knows_them_and_let_go_once_read(refs):
    """Otherwise files that never arrive, as the connection was lost, would be those chosen before."""
    for files, said in (
        ({"My_Calls.CSV": LOG["my_calls.csv"], "Stations_A.csv": LOG["my_stations.csv"].ljust(2048, "\n")},
         "sites. Files: My_Calls.CSV (0.1 KB), Stations_A.csv (2.0 KB)."),
        ({"My_Calls.CSV": "time,lon\n1,2\n", "My_Stations.csv": LOG["my_stations.csv"]}, "My_Calls.CSV"),
        ({"Calls.csv": "a", "calls.csv": "a"}, "calls.csv is chosen twice"),
        ({"City.json": CITY["city.json"], "ATOMS.csv": "a\n1\n", "Sites.csv": CITY["sites.csv"]}, "ATOMS.csv"),
        (LOG | {"Town roads.net.xml": "<net/>"}, ">Town roads.net.xml has no road open to the vehicle class"),
        ({name.upper(): text for name, text in CITY.items()}, "Read Mine: 2 atoms, 3 sites. Files: CITY.JSON"),
    ):  # fmt: skip
        read(refs, files)
        assert said in html.unescape(refs["message"].value)
        assert refs["files"].value == ()
        refs["read"].click()
        assert "No files have arrived yet" in refs["message"].value


@pytest.mark.parametrize("what", ["sites.csv", "atoms.csv", "my_stations.csv"])
def test_what_is_too_long_is_refused_before_it_is_worked_on(what, monkeypatch):
    """30,000 sites and atoms, which few MB can hold, would take 7 GB of travel times."""
    monkeypatch.setattr(_uploads.tables, "from_files", None)
    monkeypatch.setattr(_uploads, "build", None)
    files = CITY if what in CITY else LOG
    head, row, _ = files[what].split("\n", 2)
    text = "\n".join([head, *(f"{k}{row}" for k in range(2001))])
    with pytest.raises(eo.errors.InputError, match=rf"{what} has 2,001 rows; the dashboard takes at most"):
        _uploads.city_from_uploads(upload(files | {what: text}), speed_kmh=40)


def test_a_city_that_is_left_is_not_kept(shared, refs):
    """A kernel keeps every widget that is not closed, and what its callbacks hold."""
    counts = []
    for _ in range(3):
        shared.refs["city"].value = "Random grid city"
        shared.refs["city"].value = "St. Paul"
        counts.append(len(widget._instances))
    assert counts[0] == counts[1] == counts[2]


@pytest.fixture
def form(refs):
    """The dashboard with the practice town's files under names that tell nothing, and an empty form afterwards."""
    calls, stations = eo.datasets.practice_calls()
    read(refs, {"a.csv": stations.to_csv(index=False), "b.csv": calls.to_frame().to_csv(index=False)})
    yield refs
    for name in OPTIONS:
        refs[name].value = _uploads.FIELD_DEFAULTS.get(name, "")
    for name in _uploads.CHECKBOXES:
        refs[name].value = False


def test_a_day_is_planned(refs):
    refs["city"].value = "Practice town"
    refs["units"].value = 2
    refs["plan_start"].click()
    refs["plan_wait"](120)
    assert "at most 1 move between hours" in refs["plan"].value
    assert "without moves" in refs["plan"].value
    refs["city"].value = "St. Paul"
    hours = eo.panels.dashboard(eo.planning.Project(eo.datasets.load_st_paul(), about={"hours": "7, 8"})).refs
    for each, said in ((refs, "read a log of calls as your own city"), (hours, "needs the field Hours to be empty")):
        each["plan_start"].click()
        assert said in each["plan_message"].value


def test_options_of_an_own_city_make_the_city_that_the_package_makes(form, shared):
    calls, stations = eo.datasets.practice_calls()
    given = {"speed_kmh": 30, "detour": 1.5, "turnout_times": 2, "service_times": 33}
    today = f"{stations['name'][1]}, {stations['name'][0]}"
    more = {"cell_km": "2", "hours": "7-19", "weekdays": "Mon-Fri", "today": today, "name": "Town"}
    for name, value in (given | more).items():
        form[name].value = str(value)
    form["drop_repeats"].value = form["skip_empty_days"].value = True
    form["again"].click()
    assert "Read Town" in form["message"].value
    plain = stations.drop(columns=["turnout_min", "service_min"], errors="ignore")
    demand = eo.calls.aggregate_calls(calls.without_repeats(), plain, cell_km=2, empty_days="missing")
    city, made = demand.city(**given, hours=range(7, 19), weekdays=range(5)), shared.bench.city
    for name in ("travel_times", "arrival_rates", "turnout_times", "service_times"):
        assert getattr(made, name) == pytest.approx(getattr(city, name))
    assert (shared.bench.today, form["units"].value) == ((1, 0), 2)
    row = shared.bench.scenario_rows()[0]
    assert (row["speed_kmh"], row["detour"], row["hours"]) == (30, 1.5, ", ".join(map(str, range(7, 19))))
    assert row["hours_a_year"] == pytest.approx(8766 * 60 / 168)


@pytest.mark.parametrize(("sites", "units", "proven"), [(6, 3, True), (30, 13, False)])
def test_a_search_proves_what_it_found_or_says_that_it_is_the_best_found(refs, sites, units, proven):
    refs["city"].value = "Random grid city"
    refs["sites_count"].value, refs["units"].value = sites, units
    if not proven:
        assert "Optimum: not searched yet" in refs["figures"].value
        assert "too many deployments" in tab(refs, "alternatives", "Alternatives").value
        refs["optimum"].click()
        assert "no optimum yet" in refs["answer"].value
    refs["search"].click()
    refs["wait"]()
    assert ("proven by enumeration" in refs["figures"].value) == (">optimum<" in refs["figures"].value) == proven
    said = [text in refs["figures"].value for text in ("no single move improves it", ">best found<")]
    assert said == [not proven] * 2
    means = [float(text) for text in cells(refs["figures"])["mean response (min)"]]
    assert means[1] <= means[2]


def test_a_station_may_have_several_units(refs):
    refs["city"].value = "Random grid city"
    refs["sites_count"].value = 5
    most = refs["units"].max
    refs["colocation"].value = True
    assert refs["units"].max > most == 5
    refs["units"].value = 8
    assert set(cells(refs["figures"])["units"]) == {"8"}
    assert "3 of the units do not improve the p-median" in refs["figures"].value
    place = max(range(5), key=lambda k: refs["sites"][k].value)
    had = refs["sites"][place].value
    refs["map"].press(place)  # all units are placed: it takes them away
    assert refs["sites"][place].value == 0
    for _ in range(had):
        refs["map"].press(place)
    assert refs["sites"][place].value == had
    refs["colocation"].value = False
    assert refs["units"].value == refs["units"].max == 5


def test_the_map_shows_the_roads_that_were_read(shared, refs):
    """A grid of streets as OpenStreetMap has them, around the practice town's stations."""
    calls, stations = eo.datasets.practice_calls()
    low, high = (stations[["lon", "lat"]].agg(end).to_numpy() for end in ("min", "max"))
    places = [low - 0.05 + (high - low + 0.1) * (k // 6, k % 6) / 5 for k in range(36)]
    nodes = "".join(f"<node id='{k + 1}' lon='{x}' lat='{y}'/>" for k, (x, y) in enumerate(places))
    rows = np.arange(1, 37).reshape(6, 6)
    way = "<way id='{}'>{}<tag k='highway' v='residential'/></way>"
    courses = ("".join(f"<nd ref='{n}'/>" for n in line) for line in [*rows, *rows.T])
    ways = "".join(way.format(99 + k, course) for k, course in enumerate(courses))
    files = {"calls.csv": calls.to_frame().to_csv(index=False), "stations.csv": stations.to_csv(index=False)}
    files["town.osm"] = f"<osm version='0.6'>{nodes}{ways}</osm>"
    shared._show_city(_uploads.city_from_uploads(upload(files), drop_repeats=True))
    assert len(shared.refs["map"].page.scene["streets"]["courses"]) >= 12


def test_scenarios_are_collected_and_saved_with_their_gain_over_the_baseline(refs, city):
    """Today's deployment is one's own at the time of the click; gains are differences of what the table shows."""
    refs["evaluator"].value = "approximate"
    today = sorted([*ticked(refs)[:8], next(site for site in range(17) if site not in ticked(refs))])
    for site in range(17):
        refs["sites"][site].value = site in today
    refs["keep"].click()
    assert refs["baseline"].value == "today"
    refs["p_median"].click()
    median, best = p_median(city, 9).sites, evaluate_all(city, 9, "approximate").best_sites
    values = [eo.evaluators.approximate_hypercube(city, sites) for sites in (today, median, best, median)]
    now, shown = values[0], cells(refs["figures"])
    assert shown["gain over today (min)"] == [f"{now.mean_response - e.mean_response:+.3f}" for e in values]
    late = [f"{100 * (now.late_fraction(8.0) - e.late_fraction(8.0)):+.2f}" for e in values]
    assert shown["gain over today, points of 8 min or more"] == late
    refs["label"].value = "=1+1"
    refs["pinned"].value, refs["closed"].value, refs["load"].value = (8,), (0, 5), 2.0
    refs["add"].click()
    refs["files_made"].click()
    table = pd.read_csv(io.BytesIO((made := links(refs))["scenarios.csv"]), index_col="deployment")
    assert (set(table["baseline"]), table.loc["today", "gain_min"], set(table["scenario"])) == ({"today"}, 0, {"'=1+1"})
    assert table["calls_per_hour"].tolist() == pytest.approx([2 * city.total_rate] * len(table), rel=1e-9)
    assert set(table["pinned"]) == {city.site_names[8]}
    assert set(table["closed"]) == {f"{city.site_names[0]}; {city.site_names[5]}"}
    assert list(made) == ["scenarios.csv", "map.html", "deployments.png"]
    refs["load"].value = 1.0
    assert refs["links"].value == ""  # they would no longer be of what is shown


def test_a_fleet_carries_its_load_and_ones_own_deployment_follows_it(refs, city):
    """625 calls of an hour in a week are 3.75 at once: 13 units are busy for at most 30 % of the time."""
    refs["units"].value = 12
    assert ticked(refs) == p_median(city, 12).sites.tolist()
    refs["sites"][ticked(refs)[0]].value = False  # now it is one's own
    mine = set(ticked(refs))
    assert "You placed 11 of 12 units" in refs["answer"].value
    refs["units"].value = 14
    assert len(ticked(refs)) == 14
    assert mine <= set(ticked(refs))
    times = pd.date_range("2025-03-03", periods=5000, freq="2min")[::8]
    frame = pd.DataFrame({"time": times, "lon": -30.0, "lat": 45.0, "service_min": 60})
    stations = "name,lon,lat\n" + "".join(f"s{k},{-30 + k / 1000},45\n" for k in range(25))
    read(refs, {"calls.csv": frame.to_csv(index=False), "stations.csv": stations})
    assert (refs["units"].value, refs["units"].max) == (13, 25)
    refs["units"].value = 4
    assert re.search(r"4 units lose \d+% of the calls; the load needs 13", refs["answer"].value)


def test_files_arrive_in_pieces_and_a_page_that_is_not_ours_sends_no_more_than_is_allowed(refs):
    files, most = refs["files"], refs["files"].most
    for files.most, kept in ((most, b"time,lon"), (7, b"time,")):
        files._receive(files, {"files": [{"name": "a.csv", "size": 5}]}, [])
        for piece in (b"time,", b"lon"):
            files._receive(files, {"file": 0}, [memoryview(piece)])
        files._receive(files, {"done": True}, [])
        assert [file["content"] for file in files.value] == [kept]
    files.most, files.value = most, ()


def test_malformed_uploads_give_clear_messages(refs):
    """What cells may hold is tested where tables are read."""
    stations, calls = LOG["my_stations.csv"], LOG["my_calls.csv"]
    malformed = {
        "nothing": {},
        "foreign file": CITY | {"notes.txt": "hello"},
        "one log twice": LOG | {"more_calls.csv": calls},
        "logs of two clocks": LOG | {"more_calls.csv": calls.replace(":05", ":05Z").replace(":00", ":00Z")},
        "spreadsheet": {"calls.xlsx": b"PK\x03\x04", "my_stations.csv": stations},
        "no log": {"a.csv": stations, "b.csv": stations},
        "one file": {"my_calls.csv": calls},
        "empty": CITY | {"atoms.csv": ""},
        "ragged": LOG | {"my_calls.csv": calls + "1,2,3,4,5\n"},
        "no longitude": LOG | {"my_stations.csv": stations.replace("lon", "long way")},
        "no service times": CITY | {"sites.csv": CITY["sites.csv"].replace("service_min", "x")},
        "a long line": LOG | {"my_calls.csv": ";" * 100_000 + "\n"},
        "too many sites": CITY | {"sites.csv": CITY["sites.csv"] + "".join(f"s{k},1,40,-30,45\n" for k in range(201))},
    }
    read(refs, CITY)
    refs["refuse_bad"].value, figures = True, refs["figures"].value
    for what, files in malformed.items():
        read(refs, files)
        text = re.sub("<.*?>", "", refs["message"].value)
        assert 25 < len(text) < 1100, (what, text)
        assert not text.startswith("Read "), (what, text)
        assert tempfile.gettempdir() not in text, (what, text)
        assert "service_times=" not in text, what  # there is no code to write that into
        assert refs["figures"].value == figures, what  # the city before stays
    refs["refuse_bad"].value = False


def test_a_bar_says_how_long_it_will_be(monkeypatch):
    now = iter([0.0, 0.0, 100.0, 200.0, 200.0])
    monkeypatch.setattr(_widgets, "monotonic", lambda: next(now))
    with (bar := _widgets.ProgressBar("Searching")):
        bar.show_progress(10, 100)
        assert bar.description == "Searching, about 15 min left"
        bar.show_progress(0, 3)  # another part of the work begins
        assert (bar.description, bar.value) == ("Searching", 0)


def test_a_search_can_be_cancelled_and_another_city_ends_it(refs):
    refs["load"].value = 1.5
    before = refs["figures"].value
    refs["search"].click()
    assert refs["search"].disabled
    refs["cancel"].click()
    refs["wait"]()
    assert "Cancelled" in refs["answer"].value
    assert refs["figures"].value == before
    refs["search"].click()
    wait = refs["wait"]
    refs["city"].value = "Practice town"
    wait(60)
    assert "Practice town" in refs["figures"].value


def test_fields_that_cannot_be_read_are_named_as_the_page_names_them(form):
    before = form["figures"].value
    for field, text, said in (
        ("speed_kmh", "0", "the field Speed (km/h) must be from 5 to 150 km/h; got 0"),
        ("service_times", "long", "the field Service (min) must be a number"),
        ("hours", "7", "the field Hours must have a form such as 7-19"),
        ("columns", "hour=x", "the field Columns of calls must map"),
        ("today", "Atlantis", "no site is named 'Atlantis'"),
    ):
        blank, form[field].value = form[field].value, text
        form["again"].click()
        assert said.lower() in html.unescape(form["message"].value).lower()
        assert form["figures"].value == before
        form[field].value = blank
