"""Forms in which dispatch systems, open-data portals and spreadsheets write logs: each is read, or refused with the option that helps.

Names of columns are those of the sources named; all rows are made up. Every log holds the same two calls, at 0:05 and 13:20 on
14 January 2015 (or one of them), at -93.1, 44.9 and -93.2, 44.8.
"""

import datetime
import gzip
import io
import json
import re
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from uploads import file

from emsopt import calls as ec
from emsopt.errors import MissingDependencyError

PLACES = ("-93.1,44.9", "-93.2,44.8")


def times(first, second, name="time"):
    """A log whose column of times holds two texts."""
    rows = "".join(f'"{time}",{place}\n' for time, place in zip((first, second), PLACES, strict=True))
    return f"{name},lon,lat\n{rows}"


def written(method, package):
    """Return the bytes of `FRAME` as a method of pandas writes them, if a package is there."""
    pytest.importorskip(package)
    stream = io.BytesIO()
    getattr(FRAME, method)(stream, index=False)
    return stream.getvalue()


def xls():
    pytest.importorskip("python_calamine")
    return (Path(__file__).parent / "calls.xls").read_bytes()


FRAME = pd.DataFrame({"LONGITUDE": [-93.1, -93.2], "LATITUDE": [44.9, 44.8], "Unit": ["E1", None]})
FRAME["Alarm Date"] = pd.to_datetime(["2015-01-14 00:05", "2015-01-14 13:20"])
POINTS = [
    {"properties": {"CallDateTime": time, "OBJECTID": 1}, "geometry": {"type": "Point", "coordinates": place}}
    for time, place in ((1421193900000, [-93.1, 44.9]), (1421241600000, [-93.2, 44.8]))
]
# Clocks: 0:05 and 13:20 in Minneapolis are 6:05 and 19:20 in UTC.
UTC = {"time_zone": "America/Chicago"}

# Contents, the file's name, the option that helps (and is then named in the refusal), and what else is to be found.
TABLES = {
    "Montgomery County, 911": (
        ("lat,lng,desc,zip,title,timeStamp,twp,addr,e\n"
        "44.9,-93.1,A & B,19401,EMS: FALL,2015-01-14 00:05:00,X,Y,1\n44.8,-93.2,C,,Fire: ALARM,2015-01-14 13:20:00,X,Y,1\n"),
        "911.csv", {}, {},
    ),
    "San José": (
        ('"Incident_No","Date_Time_Of_Event","Dispatched_Time","Unit_On_The_Way_Time","Unit_On_Scene_TimeStamp","On_Scene_Unit",'
        '"Cleared_TimeStamp","Unit_Count","Priority","Final_Incident_Type","Latitude","Longitude"\n'
        '"F1","1/14/15 12:05 AM","1/14/15 12:07 AM","1/14/15 12:08 AM","1/14/15 12:13 AM","E3","1/14/15 12:27 AM","2","Priority 2","M","44.9","-93.1"\n'
        '"F2","1/14/15 1:20 PM","1/14/15 1:21 PM","","","","1/14/15 1:22 PM","1","Priority 1","M","44.8","-93.2"\n'),
        "sj.csv", {}, {"dispatched": "00:07", "en_route": "00:08", "on_scene": "00:13", "cleared": "00:27", "unit": "E3", "units_sent": 2, "priority": "Priority 2", "service_min": 20},
    ),
    "San Francisco, one row per unit": (
        ("Call Number,Unit ID,Incident Number,Call Type,Call Date,Watch Date,Received DtTm,Entry DtTm,Dispatch DtTm,Response DtTm,On Scene DtTm,"
        "Transport DtTm,Hospital DtTm,Available DtTm,Station Area,Final Priority,Number of Alarms,case_location\n"
        "1,E07,11,M,01/14/2015,01/13/2015,01/14/2015 12:05:00 AM,01/14/2015 12:06:00 AM,01/14/2015 12:07:00 AM,01/14/2015 12:08:00 AM,01/14/2015 12:19:00 AM,,,01/14/2015 12:41:00 AM,07,3,1,POINT (-93.1 44.9)\n"
        "1,M43,11,M,01/14/2015,01/13/2015,01/14/2015 12:05:00 AM,01/14/2015 12:06:00 AM,01/14/2015 12:07:00 AM,01/14/2015 12:08:30 AM,01/14/2015 12:13:00 AM,,,01/14/2015 12:27:00 AM,07,3,1,POINT (-93.1 44.9)\n"
        "2,E08,12,M,01/14/2015,01/14/2015,01/14/2015 01:20:00 PM,01/14/2015 01:21:00 PM,,,,,,,08,2,1,POINT (-93.2 44.8)\n"),
        "sf.csv", {}, {"dispatched": "00:07", "en_route": "00:08", "on_scene": "00:13", "unit": "M43", "station": "07", "units_sent": 2, "priority": "3", "service_min": 20},
    ),
    "Seattle, Fire 911": (
        ("Address,Type,Datetime,Latitude,Longitude,Report Location,Incident Number\n"
        "A,Aid,01/14/2015 12:05:00 AM,44.9,-93.1,POINT (-93.1 44.9),F15\nB,Aid,01/14/2015 01:20:00 PM,44.8,-93.2,POINT (-93.2 44.8),F16\n"),
        "seattle.csv", {}, {},
    ),
    "Seattle, place in one column": (
        'Type,Datetime,Report Location\nAid,2015-01-14T00:05:00,"(44.9, -93.1)"\nAid,2015-01-14T13:20:00,"(44.8, -93.2)"\n',
        "seattle.csv", {}, {},
    ),
    "London Fire Brigade": (
        ("IncidentNumber,DateOfCall,CalYear,TimeOfCall,HourOfCall,IncidentGroup,Easting_rounded,Northing_rounded,Latitude,Longitude,"
        "FirstPumpArriving_AttendanceTime,FirstPumpArriving_DeployedFromStation,NumPumpsAttending\n"
        "1-15,14 Jan 2015,2015,00:05:00,0,Fire,530050,180050,44.9,-93.1,480,Soho,2\n2-15,14 Jan 2015,2015,13:20:00,13,Fire,1,2,44.8,-93.2,,,\n"),
        "lfb.csv", {}, {"on_scene": "00:13", "station": "Soho", "units_sent": 2},
    ),
    "New York, EMS": (
        ("CAD_INCIDENT_ID,INCIDENT_DATETIME,INITIAL_SEVERITY_LEVEL_CODE,FINAL_SEVERITY_LEVEL_CODE,FIRST_ASSIGNMENT_DATETIME,DISPATCH_RESPONSE_SECONDS_QY,"
        "FIRST_ACTIVATION_DATETIME,FIRST_ON_SCENE_DATETIME,INCIDENT_TRAVEL_TM_SECONDS_QY,FIRST_HOSP_ARRIVAL_DATETIME,INCIDENT_CLOSE_DATETIME,ZIPCODE,ZIP_X,ZIP_Y\n"
        "150140001,01/14/2015 12:05:00 AM,2,3,01/14/2015 12:07:00 AM,120,01/14/2015 12:08:00 AM,01/14/2015 12:13:00 AM,300,01/14/2015 12:20:00 AM,01/14/2015 12:27:00 AM,10001,-93.1000,44.9000\n"
        "150140002,01/14/2015 01:20:00 PM,2,2,01/14/2015 01:21:00 PM,60,,,,,01/14/2015 01:22:00 PM,10002,-93.2000,44.8000\n"),
        "fdny.csv", {"columns": {"lon": "ZIP_X", "lat": "ZIP_Y"}}, {"dispatched": "00:07", "en_route": "00:08", "on_scene": "00:13", "priority": "3", "service_min": 20},
    ),
    "NFIRS": (
        ("STATE^FDID^INC_DATE^INC_NO^EXP_NO^ALARM^ARRIVAL^INC_CONT^LU_CLEAR^LATITUDE^LONGITUDE\n"
        "MN^1^1142015^1^0^11420150005^11420150013^^11420150027^44.9^-93.1\nMN^1^1142015^2^0^11420151320^^^^44.8^-93.2\n"),
        "nfirs.txt", {}, {"on_scene": "00:13", "cleared": "00:27"},
    ),
    "times of day beside one date": (
        ("Incident Number,Call Date,Call Time,Dispatched,En Route,On Scene,Cleared,X,Y\n"
        "1,1/14/2015,0:05,0:07,0:08,0:13,0:27,-93.10000,44.90000\n2,1/14/2015,13:20,13:21,,,13:50,-93.20000,44.80000\n"),
        "cad.csv", {}, {"dispatched": "00:07", "en_route": "00:08", "on_scene": "00:13", "service_min": 20},
    ),
    "hours and minutes as numbers": ("date,time,lon,lat\n2015-01-14,5,-93.1,44.9\n2015-01-14,1320,-93.2,44.8\n", "c.csv", {}, {}),
    "tabs and UTF-16": (("Zeit\tLänge\tBreite\n14.01.2015 00:05\t-93,1\t44,9\n14.01.2015 13:20\t-93,2\t44,8\n").encode("utf-16"), "calls.txt", {"columns": {"lon": "Länge", "lat": "Breite"}}, {}),
    "semicolons, decimal commas, Windows-1252": ("Bemerkung;time;lon;lat;service_min\nMär;14.01.2015 00:05;-93,1;44,9;20,0\n;14.01.2015 13:20;-93,2;44,8;3,5\n".encode("cp1252"), "calls.csv", {}, {"service_min": 20}),
    "a byte-order mark, a title and blank lines": ("\ufeffCalls of January\n\n,,\ntime,lon,lat\n2015-01-14 00:05,-93.1,44.9\n2015-01-14 13:20,-93.2,44.8\n", "calls.csv", {}, {}),
    "units below the header": ("time,lon,lat,service_min\nlocal,deg,deg,min\n2015-01-14 00:05,-93.1,44.9,20\n2015-01-14 13:20,-93.2,44.8,30\n", "calls.csv", {}, {"service_min": 20}),
    "a separator for Excel": ("sep=|\ntime|lon|lat\n2015-01-14 00:05|-93.1|44.9\n2015-01-14 13:20|-93.2|44.8\n", "calls.csv", {}, {}),
    "gzip": (gzip.compress(times("2015-01-14 00:05", "2015-01-14 13:20").encode()), "calls.csv.gz", {}, {}),
    "Excel": (lambda: written("to_excel", "openpyxl"), "calls.xlsx", {}, {"unit": "E1"}),
    "Excel of 1997": (xls, "calls.xls", {}, {"unit": "E1"}),
    "Parquet": (lambda: written("to_parquet", "pyarrow"), "calls.parquet", {}, {"unit": "E1"}),
    "GeoJSON of ArcGIS": (json.dumps({"type": "FeatureCollection", "features": POINTS}), "calls.geojson", {}, {}),
    "two digits": (times("1/14/15 12:05 AM", "1/14/15 1:20 PM"), "calls.csv", {}, {}),
    "Excel, United States": (times("1/14/2015 0:05", "1/14/2015 13:20"), "calls.csv", {}, {}),
    "Oracle": (times("14-JAN-15 12.05.00.000000 AM", "14-JAN-15 01.20.00.000000 PM"), "calls.csv", {}, {}),
    "in words": (times("Wednesday, January 14, 2015 12:05 AM", "January 14, 2015, 1:20 p.m."), "calls.csv", {}, {}),
    "day and month in words": (times("14 Jan 2015 00:05", "14th January 2015 13:20"), "calls.csv", {}, {}),
    "digits, month first": (times("011420150005", "011420151320"), "calls.csv", {}, {}),
    "seconds since 1970": (times("1421215500", "1421263200"), "calls.csv", UTC, {}),
    "milliseconds since 1970": (times("1421215500000", "1421263200000.0"), "calls.csv", UTC, {}),
    "Excel's numbers": (times("42018.0034722222", "42018.5555555556"), "calls.csv", {}, {}),
    "month or day first": (times("1/4/2015 0:05", "1/4/2015 13:20"), "calls.csv", {"time_format": "month first"}, {}),
    "year or day first": (times("15-01-04 00:05", "15-01-04 13:20"), "calls.csv", {"time_format": "year first"}, {}),
    "several times of unknown meaning": ("T1,T2,lon,lat\n2015-01-14 00:05,2015-01-14 00:06,-93.1,44.9\n2015-01-14 13:20,2015-01-14 13:20,-93.2,44.8\n", "calls.csv", {"columns": {"time": "T1"}}, {}),
}  # fmt: skip


def check(log, first="00:05"):
    day = "2015-01-04" if log.times[0] < np.datetime64("2015-01-05") else "2015-01-14"
    assert [str(t) for t in log.times] == [f"{day}T{first}:00", f"{day}T13:20:00"]
    assert log.locations.tolist() == [[-93.1, 44.9], [-93.2, 44.8]]


@pytest.mark.parametrize("form", TABLES)
def test_tables(form):
    content, name, options, found = TABLES[form]
    content = content() if callable(content) else content
    for role, column in options.get("columns", {}).items():
        assert role in ("time", "lon", "lat")
        refused(re.escape(column) if form != "tabs and UTF-16" else "columns=", ec.read_calls, file(content, name))
    if "time_format" in options:
        refused(f"time_format='{options['time_format']}'", ec.read_calls, file(content, name))
    log = ec.read_calls(file(content, name), **options)
    check(log)
    for role, value in found.items():
        cell = log.service_min[0] if role == "service_min" else log.details[role][0]
        assert (cell.strftime("%H:%M") if isinstance(cell, pd.Timestamp) else cell) == value, role


STATIONS = {
    "ArcGIS": ("X,Y,OBJECTID,NAME,ADDRESS\n-93.1,44.9,1,A,Main\n-93.2,44.8,2,B,Main\n", "A"),
    "San José": ("name,latitude,longitude,address\nA,44.9,-93.1,Main\nB,44.8,-93.2,Main\n", "A"),
    "without names": ("latitude, longitude, address\n44.9,-93.1,Main\n44.8,-93.2,Main\n", None),
    "lokigi": ("Facility_Name,Latitude,Longitude,Existing\nA,44.9,-93.1,Yes\nB,44.8,-93.2,No\n,,,\n", "A"),
    "numbers": ("STATION_NO;LONG;LAT;turnout_min\n7;-93,1;44,9;1,5\n8;-93,2;44,8;2\n", "7"),
    "Socrata": ('Station Name,Location\nA,"(44.9, -93.1)"\nB,"(44.8, -93.2)"\n', "A"),
    "tabs": ("site\tlng\tlat\nA\t-93.1\t44.9\nB\t-93.2\t44.8\n", "A"),
}


@pytest.mark.parametrize("form", STATIONS)
def test_stations(form):
    text, name = STATIONS[form]
    frame = ec.read_stations(file(text, "stations.csv"))
    assert frame[["lon", "lat"]].to_numpy().tolist() == [[-93.1, 44.9], [-93.2, 44.8]]
    assert ("name" in frame) == (name is not None)
    assert name is None or frame["name"][0] == name
    assert "turnout_min" not in frame or [*map(float, frame["turnout_min"])] == [1.5, 2]


def test_other_tables_are_refused_with_what_takes_them():
    refused("column 'x', row 1.*look projected", ec.read_stations, file("Station,X,Y\nA,500000,4900000\n", "s.csv"))
    refused("row 1: expected degrees.*blank", ec.read_stations, file("name,lon,lat\nA,,45\n", "s.csv"))
    refused(r"columns=\{'lon': ..., 'lat': ...\}", ec.read_stations, file("Station,X,Y\nA,1.5,12\nB,9.5,20\n", "s.csv"))
    assert len(ec.read_stations(file("Station,X,Y\nA,1.5,12\nB,9.5,20\n", "s.csv"), {"lon": "X", "lat": "Y"})) == 2
    # The table of areas of lokigi: the refusal names what takes it.
    refused("'arrival_rate'", ec.read_calls, file("LSOA,demand\nNorth 1A,3627\nNorth 1B,2323\n", "demand.csv"))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in ("a.csv", "b.csv"):
            archive.writestr(name, b"x")
    refused("must hold one file; it holds 2", ec.read_calls, file(packed.getvalue(), "calls.zip"))


def test_columns_decide_over_names_and_what_was_taken_is_said():
    content, name, _, _ = TABLES["San José"]
    log = ec.read_calls(file(content, name))
    for said in (repr(log), log._repr_html_()):
        assert "Unit_On_Scene_TimeStamp" in said
        assert not any(secret in said for secret in ("44.9", "-93.1", "00:05", "E3"))
    assert len(log.where(np.array([False, True])).details) == 1
    again = ec.read_calls(log.to_frame())
    pd.testing.assert_frame_equal(again.details, log.details)
    content = "time,lon,lat,Alarm,unit\n2020-01-01,-93.1,44.9,2015-01-14 00:05,E1\n2020-01-01,-93.2,44.8,2015-01-14 13:20,E2\n"
    log = ec.read_calls(file(content), {"time": "alarm", "unit": None})
    check(log)
    assert "unit" not in log.details
    for columns in ({"when": "Alarm"}, {"time": 3}, "time"):
        refused("must map", ec.read_calls, file(content), columns)
    refused("no column 'Alert' to take for 'time'", ec.read_calls, file(content), {"time": "Alert"})


def test_preview_hides_clock_and_units():
    """The same calls a day and some minutes later, from another crew 10 m away, look the same."""
    content, name, _, _ = TABLES["San José"]
    calls = ec.read_calls(file(content, name)).to_frame()
    later = calls.assign(unit=["E4", "E5"], station=["4", "5"], lon=calls["lon"] + 1e-4)
    for role in ("time", "dispatched", "en_route", "on_scene", "cleared"):
        later[role] += pd.Timedelta("1D 17min")
    rows = ec.read_calls(calls).preview()
    pd.testing.assert_frame_equal(rows, ec.read_calls(later).preview())
    assert (rows["on_scene"].dt.total_seconds().tolist()[0], rows["on_scene"].isna().tolist()) == (480, [False, True])
    assert not {"unit", "station"} & set(rows)


def test_wrong_stamps_do_not_break_reading_and_are_found():
    hours = pd.date_range("2025-01-01", periods=200, freq="h")
    frame = pd.DataFrame({"time": hours, "lon": -93.123456, "lat": np.linspace(44.812345, 44.912345, 200)})
    for role, after in {"dispatched": "1min", "on_scene": "9min", "cleared": "41min"}.items():
        frame[role] = (frame["time"] + pd.Timedelta(after)).astype(str)
    frame.loc[:2, "on_scene"] = frame.loc[:2, "time"].astype(str)
    frame.loc[3, "on_scene"] = "CANCELLED"
    frame.loc[4, "on_scene"] = "1900-01-01 00:00:00"
    frame.loc[5, "cleared"] = frame.loc[5, "dispatched"]
    frame.loc[6, "cleared"] = "2025-02-14 00:00:00"
    log = ec.read_calls(frame)
    assert log.details["on_scene"].isna().sum() == 2
    assert np.isnan(log.service_min[[5, 6]]).all()
    assert (log.no_service.tolist(), np.nanmean(log.service_min)) == ([k == 5 for k in range(200)], 40)
    findings = {finding.what: finding for finding in ec.check_calls(log)}
    assert findings["stamps out of order"].rows == (1, 2, 3, 6)
    assert "100%" in findings["stamps to the minute"].text
    refused("row 1: expected a time", ec.read_calls, frame.assign(x="never"), {"en_route": "x"})


@given(
    st.lists(st.dates(datetime.date(2015, 1, 1), datetime.date(2016, 1, 1)), min_size=1, max_size=8),
    st.sampled_from(["%d/%m/%Y", "%m/%d/%Y", "%m/%d/%y"]),
)
@settings(max_examples=30, deadline=None)
def test_day_and_month_are_never_mixed_up(days, layout):
    """Read right if a day is after the twelfth, and otherwise refused with an option that works."""
    frame = pd.DataFrame({"time": [day.strftime(layout) for day in days], "lon": -93.1, "lat": 44.9})
    right = sorted(days)
    option = "day first" if layout.startswith("%d") else "month first"
    if max(day.day for day in days) <= 12:
        refused(f"time_format='{option}'", ec.read_calls, frame)
    else:
        assert ec.read_calls(frame).times.astype("datetime64[D]").tolist() == right
    assert ec.read_calls(frame, time_format=option).times.astype("datetime64[D]").tolist() == right


def test_a_second_column_of_times_may_tell_what_the_first_does_not():
    thirteenth = pd.DataFrame({"time": ["13/1/2015 23:50"], "lon": -93.1, "lat": 44.9})
    assert str(ec.read_calls(thirteenth).times[0]) == "2015-01-13T23:50:00"
    days = pd.DataFrame({"Call": ["2015-01-14"], "Dispatched": ["16:05"], "lon": -93.1, "lat": 44.9})
    assert str(ec.read_calls(days).times[0]) == "2015-01-14T16:05:00"
    frame = pd.DataFrame({"time": ["1/12/2015 23:50"], "lon": -93.1, "lat": 44.9, "cleared": ["1/13/2015 0:20"]})
    log = ec.read_calls(frame)
    assert (str(log.times[0]), str(log.details["cleared"][0])) == ("2015-01-12T23:50:00", "2015-01-13 00:20:00")


LAYOUTS = {  # names of the columns that are to be taken, or None; then names of others that must not win
    "words in any order": ("create_time_incident,dispatch_time_primary_unit,enroute_time_primary_unit,arrival_time_primary_unit,closed_time_incident", "update_time_incident"),
    "abbreviations": ("TS_RECV,TS_DISP,TS_ENRT,TS_ONSC,TS_CLR", "TS_HOSP"),
    "capitals": ("TimeCallReceived,TimeUnitAssigned,TimeUnitMobile,TimeAtScene,TimeUnitClear", "TimeAtHospital"),
    "codes in brackets": ("PSAP Call Date/Time (eTimes.01),Unit Notified by Dispatch Date/Time (eTimes.03),Unit En Route Date/Time (eTimes.05),Unit Arrived on Scene Date/Time (eTimes.06),Unit Back in Service Date/Time (eTimes.13)", "Arrived at Patient Date/Time (eTimes.07),Unit Left Scene Date/Time (eTimes.09)"),
    "German": ("Notrufeingang,Alarmierung,Ausgerückt (Status 3),Eintreffen E-Ort (Status 4),Frei (Status 1)", "Ankunft Krankenhaus,Zielort an (Status 8)"),
    "French": ("Date/heure appel,Heure alerte engin,Départ engin,Arrivée sur les lieux,Engin disponible", "Départ hôpital,Arrivée hôpital"),
    "Spanish": ("Fecha y hora de llamada,Hora despacho,Hora salida,Llegada al lugar,Hora libre", "Llegada hospital,Salida hacia hospital"),
    "Italian": ("Data ora chiamata,Ora allarme,Ora partenza mezzo,Ora arrivo sul posto,Ora fine missione", "Arrivo ospedale"),
    "Dutch": ("Tijdstip melding,Tijd alarmering,Tijd vertrek,Tijd ter plaatse,Tijd vrij", "Aankomst ziekenhuis"),
}  # fmt: skip
PLACES_OF = [
    *("Geo X,Geo Y", "Rechtswert,Hochwert", "MGA_E,MGA_N", "Grid Easting (m),Grid Northing (m)", "X (L93),Y (L93)"),
    *("Geogr. Länge,Geogr. Breite", "X_CORD,Y_CORD", "LON_E6,LAT_E6", "Longitud,Latitud", "xkoord,ykoord"),
]  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
@given(st.randoms(use_true_random=False), st.sampled_from(PLACES_OF))
@settings(max_examples=5, deadline=None)
def test_layouts_of_many_systems(layout, random, places):
    """In any order of the columns, each stamp is taken from its own one, and none from those of a hospital or patient."""
    wanted, others = LAYOUTS[layout]
    roles = dict(zip(["time", "dispatched", "en_route", "on_scene", "cleared"], wanted.split(","), strict=True))
    lon, lat = places.split(",")
    columns = {lon: [-93.1234, -93.2345], lat: [44.8123, 44.9123]}
    for k, name in enumerate([*roles.values(), *others.split(",")]):
        columns[name] = [f"2015-01-{day} 00:{k:02d}:30" for day in (14, 15)]
    names = random.sample(list(columns), len(columns))
    log = ec.read_calls(pd.DataFrame(columns)[names])
    assert dict(log.taken) == roles | {"lon": lon, "lat": lat}


LINES = [[], ["Calls of the county"], ["Calls", "Period:;1 March 2015 - 31 March 2015", ""], ["Rows, with a comma", "", "a;b;c"]]  # fmt: skip


@given(
    st.sampled_from(LINES), st.sampled_from([1, 1_000_000, 10_000_000]), st.sampled_from([".psv", ".log", ".csv.zip"])
)
@settings(max_examples=10, deadline=None)
def test_lines_above_the_header_endings_and_integer_degrees(above, scale, ending):
    """One date with times of day that pass midnight, below lines that are no header, as text or in a .zip."""
    lines = ["Einsatz-Nr.;Datum;Notrufeingang;Alarmierung;Eintreffen;Frei;X_CORD;Y_CORD;Bemerkung"]
    for k in range(20):
        places = (str(round(degree * scale, 6)).removesuffix(".0") for degree in (-93.1 - k / 100, 44.9))
        lines.append(f"{k};{k + 1:02d}.03.2015;23:50;23:58;00:06;00:50;{';'.join(places)};")
    content = "\n".join([*above, *lines, "", "Total:;20", "Note;x"]).encode()
    if ending.endswith(".zip"):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("calls.csv", content)
            archive.writestr("__MACOSX/._calls.csv", b"x")
        content = packed.getvalue()
    log = ec.read_calls(file(content, f"calls{ending}"))
    assert (len(log), log.header) == (20, 1 + len(above))
    assert np.allclose(log.locations[0], [-93.1, 44.9])
    minutes = (log.details[["dispatched", "on_scene", "cleared"]].sub(pd.Series(log.times), axis=0)).iloc[0]
    assert (minutes.dt.total_seconds() / 60).tolist() == [8, 16, 60]


@pytest.mark.parametrize("start", ["T0", "Call", "Call received"])
def test_elapsed_times_whose_names_say_from_and_to(start):
    columns = {"Allocation (secs)": "60", "Mobile (secs)": "150", "At Scene (mm:ss)": "09:30"}
    columns = {f"{start} to {name}": cell for name, cell in columns.items()}
    columns |= {"Job Cycle Time, Allocation to Clear (hh:mm:ss)": "01:10:00", "Time to Hospital (mm:ss)": "40:00"}
    days = [f"{day:02d}/03/2015 00:21" for day in range(1, 29)]
    log = ec.read_calls(pd.DataFrame({"Call Connect (T0)": days, "Easting": -93.1, "Northing": 44.9} | columns))
    after = log.details[["dispatched", "en_route", "on_scene", "cleared"]].sub(pd.Series(log.times), axis=0)
    assert [after[role].dt.total_seconds().unique().tolist() for role in after] == [[60], [150], [570], [4260]]


def test_missing_packages_are_named(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr("importlib.import_module", missing)
    for name, package in (("c.xlsx", "openpyxl"), ("c.xls", "calamine"), ("c.parquet", "pyarrow")):
        with pytest.raises(MissingDependencyError, match=rf"{package}.*emsopt\[tables\].*CSV"):
            ec.read_calls(file(b"PK", name))
