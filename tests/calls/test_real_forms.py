"""Forms in which dispatch systems, open-data portals and spreadsheets write logs: each is read, or refused with the option that helps.

Names of columns are those of the sources named; all rows are made up. Every log holds the same two calls, at 0:05 and 13:20 on
14 January 2015 (or one of them), at -93.1, 44.9 and -93.2, 44.8.
"""

import datetime
import gzip
import io
import json
import re

import numpy as np
import pandas as pd
import pytest

from emsopt import calls as ec
from emsopt.errors import InputError

PLACES = ("-93.1,44.9", "-93.2,44.8")


def file(content, name="calls.csv"):
    stream = io.BytesIO(content if isinstance(content, bytes) else content.encode())
    stream.name = name
    return stream


def times(first, second, name="time"):
    """A log whose column of times holds two texts."""
    rows = "".join(f'"{time}",{place}\n' for time, place in zip((first, second), PLACES, strict=True))
    return f"{name},lon,lat\n{rows}"


def excel(frame):
    pytest.importorskip("openpyxl")
    stream = io.BytesIO()
    frame.to_excel(stream, index=False)
    return stream.getvalue()


def parquet(frame):
    pytest.importorskip("pyarrow")
    stream = io.BytesIO()
    frame.to_parquet(stream)
    return stream.getvalue()


FRAME = pd.DataFrame(
    {
        "Alarm Date": [datetime.datetime(2015, 1, 14, 0, 5), datetime.datetime(2015, 1, 14, 13, 20)],
        "LONGITUDE": [-93.1, -93.2],
        "LATITUDE": [44.9, 44.8],
        "Unit": ["E1", None],
    }
)
POINTS = [
    {
        "type": "Feature",
        "properties": {"CallDateTime": 1421193900000 + 47_700_000 * k, "OBJECTID": k},
        "geometry": {"type": "Point", "coordinates": place},
    }
    for k, place in enumerate([[-93.1, 44.9], [-93.2, 44.8]])
]
# Clocks: 0:05 and 13:20 in Minneapolis are 6:05 and 19:20 in UTC.
UTC = {"time_zone": "America/Chicago"}

DATES = {
    "ISO": ("2015-01-14 00:05", "2015-01-14T13:20:00", {}),
    "Socrata, floating": ("2015-01-14T00:05:00.000", "2015-01-14T13:20:00.000", {}),
    "Socrata, CSV": ("01/14/2015 12:05:00 AM", "01/14/2015 01:20:00 PM", {}),
    "San José": ("1/14/15 12:05 AM", "1/14/15 1:20 PM", {}),
    "Excel, United States": ("1/14/2015 0:05", "1/14/2015 13:20", {}),
    "Excel, Britain": ("14/01/2015 00:05", "14/01/2015 13:20", {}),
    "Excel, Germany": ("14.01.15 00:05", "14.01.2015 13:20:00", {}),
    "Seattle, seven years ago": ("2015 Jan 14 12:05:00 AM", "2015 Jan 14 01:20:00 PM", {}),
    "Oracle": ("14-JAN-15 12.05.00.000000 AM", "14-JAN-15 01.20.00.000000 PM", {}),
    "SAS": ("14JAN2015:00:05:00", "14JAN2015:13:20:00", {}),
    "SQL Server": ("Jan 14 2015 12:05AM", "Jan 14 2015  1:20PM", {}),
    "in words": ("Wednesday, January 14, 2015 12:05 AM", "January 14, 2015, 1:20 p.m.", {}),
    "day and month in words": ("14 Jan 2015 00:05", "14th January 2015 13:20", {}),
    "ISO with a 12-hour clock": ("2015-01-14 12:05:00 AM", "2015-01-14 1:20:00 PM", {}),
    "digits": ("20150114000500", "20150114132000", {}),
    "digits, month first": ("011420150005", "011420151320", {}),
    "offsets": ("2015-01-14T00:05:00-06:00", "2015-01-14 13:20:00-0600", {}),
    "UTC": ("2015-01-14T06:05:00Z", "2015-01-14T19:20:00Z", UTC),
    "seconds since 1970": ("1421215500", "1421263200", UTC),
    "milliseconds since 1970": ("1421215500000", "1421263200000.0", UTC),
    "Excel's numbers": ("42018.0034722222", "42018.5555555556", {}),
}

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
    "NEMSIS": (
        ("eTimes.03 Unit Notified by Dispatch Date/Time,Unit En Route Date Time,Unit Arrived on Scene Date Time,Unit Back in Service,Scene GPS Latitude,Scene GPS Longitude\n"
        "2015-01-14T00:05:00,2015-01-14T00:08:00,2015-01-14T00:13:00,2015-01-14T00:27:00,44.9,-93.1\n2015-01-14T13:20:00,,,,44.8,-93.2\n"),
        "nemsis.csv", {"columns": {"time": "eTimes.03 Unit Notified by Dispatch Date/Time"}}, {"en_route": "00:08", "on_scene": "00:13"},
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
    "Excel": (lambda: excel(FRAME), "calls.xlsx", {}, {"unit": "E1"}),
    "Parquet": (lambda: parquet(FRAME), "calls.parquet", {}, {"unit": "E1"}),
    "GeoJSON of ArcGIS": (json.dumps({"type": "FeatureCollection", "features": POINTS}), "calls.geojson", {}, {}),
    "month or day first": (times("1/4/2015 0:05", "1/4/2015 13:20"), "calls.csv", {"time_format": "month first"}, {}),
    "year or day first": (times("15-01-04 00:05", "15-01-04 13:20"), "calls.csv", {"time_format": "year first"}, {}),
    "names of one's own": ("A,B,C\n2015-01-14 00:05,-93.1000,44.9000\n2015-01-14 13:20,-93.2000,44.8000\n", "calls.csv", {"columns": {"lon": "B", "lat": "C"}}, {}),
    "several times of unknown meaning": ("T1,T2,lon,lat\n2015-01-14 00:05,2015-01-14 00:06,-93.1,44.9\n2015-01-14 13:20,2015-01-14 13:20,-93.2,44.8\n", "calls.csv", {"columns": {"time": "T1"}}, {}),
}  # fmt: skip


def check(log, first="00:05"):
    day = "2015-01-04" if log.times[0] < np.datetime64("2015-01-05") else "2015-01-14"
    assert [str(t) for t in log.times] == [f"{day}T{first}:00", f"{day}T13:20:00"]
    assert log.locations.tolist() == [[-93.1, 44.9], [-93.2, 44.8]]


def test_there_are_forty_forms():
    assert len(DATES) + len(TABLES) >= 40


@pytest.mark.parametrize("form", DATES)
def test_dates(form):
    first, second, options = DATES[form]
    check(ec.read_calls(file(times(first, second)), **options))


@pytest.mark.parametrize("form", TABLES)
def test_tables(form):
    content, name, options, found = TABLES[form]
    content = content() if callable(content) else content
    for role, column in options.get("columns", {}).items():
        assert role in ("time", "lon", "lat")
        with pytest.raises(InputError, match=re.escape(column) if form != "tabs and UTF-16" else "columns="):
            ec.read_calls(file(content, name))
    if "time_format" in options:
        with pytest.raises(InputError, match=f"time_format='{options['time_format']}'"):
            ec.read_calls(file(content, name))
    log = ec.read_calls(file(content, name), **options)
    check(log)
    for role, value in found.items():
        cell = log.service_min[0] if role == "service_min" else log.details[role][0]
        assert (cell.strftime("%H:%M") if isinstance(cell, pd.Timestamp) else cell) == value, role
