"""Find the column of a table for each role (time, place, unit, ...), by its name and its first values.

Names are compared in lower case, without accents, signs and what stands in brackets: ``Date_Time_Of_Event`` as
"datetimeofevent". Names of times are also compared without words that do not distinguish them:
``arrival_time_primary_unit`` as "arrival". A fitting name is not enough: the cells of a column of times must be times,
and those of a column of numbers numbers.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial

import numpy as np

from .._files.columns import DECIMAL, blank, list_columns, texts
from .._types import FloatArray
from .._validate import quote
from ..errors import Argument, InputError, Message
from . import _time_forms
from ._points import Cells, Choose, place

# Words around the telling one in names such as First_Unit_On_Scene_DtTm, Longitude_WGS84 and IncidentNumber.
_BEFORE = (
    r"(?:date|time|dt|tm|stamp|and|of|the|to|first|1st|last|initial|primary|unit|pump|crew|vehicle|call|incident|event|"
    r"alarm|cad|psap|911|999|112)*"
)
_SAY_NOTHING = re.compile(  # words in names of all kinds of times, which distinguish none, in several languages
    "date|time|dt|tm|dttm|datetime|timestamp|stamp|ts|utc|local|actual|of|the|by|first|prim(?:ary)?|initial|units?|pump|"
    "crew|vehicle|apparatus|resource|cad|ems|psap|911|999|112|du|des?|d|la|les?|l|del|al|el|di|il|der|am|um|y|datum|"
    "uhrzeit|zeit|zeitpunkt|heure|horaire|fecha|hora|data|ora|tijd|tijdstip|fahrzeug|rettungsmittel|engin|vehicule|unidad|"
    "movil|ambulanc(?:ia|e)|mezzo|voertuig|eenheid"
)
_SAY_LITTLE = re.compile(
    "call|incident|event|alarm|emergency|appel|intervention|einsatz|llamada|incidente|chiamata|melding"
)
# Times that are no stamps of a unit: of the patient, of the hospital, of leaving the scene.
_ELSEWHERE = re.compile(
    "hosp|patient|dest|facil|transp|transf|cancel|birth|dob|updat|modif|zielort|klinik|krankenhaus|hopital|"
    "(?:left|leav(?:e|ing)|depart(?:ed|ing|ure)?)(?:from|the)*scene|staging|staged"
)
_TIMED = r"(?:date|time|dt|tm|ts|stamp|and|at|utc|local|actual)*"
_AFTER = r"(?:date|time|dt|tm|ts|stamp|and|at|utc|local|actual|on|to|scene|unit|first)*"
_GEO = (
    "(?:geo|gps|utm|mga|osgb|bng|grid|coo?rd|koord|wgs|84|incident|call|event|scene|address|location|site|map|start|"
    "centroid|point|einsatzort|gk)*"
)
_DEGREES = (
    "(?:wgs84|dd|deg|degrees|decimal|micro|e[567]|coo?rd|coordinate|coordonnee|koord(?:inate)?|coordenada|utm|lambert|"
    "l?93|rd|m)*"
)
_ID = "(?:no|num|nbr|nr|number|nummer|numero|id|key|ref|reference)"
_MINUTES = r"(?:time|duration)?(?:in)?(?:min|mins|minutes)"

# Patterns of names by role; an earlier pattern is preferred.
_CALL = "call|event|incident|alarm|report(?:ed)?|creat(?:ed?|ion)|open(?:ed)?|entry|entered|start(?:ed)?|request(?:ed)?"
TIME = (
    "time|datetime|timestamp|dttm",
    (
        rf"{_BEFORE}(?:receiv(?:ed)?|re?c(?:ei)?vd?|receipt|pickup|ofcall|connect(?:ed)?|t0|(?:not|an)?ruf(?:eingang|annahme)|"
        r"(?:meldungs)?eingang(?:notruf)?|priseappel|reception|recu|recepcion|recibida|ricezione|ricevuta|aangenomen|etimes01)"
        rf"{_TIMED}"
    ),
    rf"{_BEFORE}(?:{_CALL}|(?:not|an)ruf|einsatzbeginn|appel|llamada|chiamata|melding){_TIMED}",
    rf"{_BEFORE}(?:date|day|time){_TIMED}",
)
DATE = ("date", "datum|fecha|data|jour|giorno", *TIME)
STAMPS = {
    "dispatched": "disp(?:atch)?(?:ed)?|assign(?:ed|ment)?|alert(?:ed)?|mobili[sz](?:ed|ation)?|toned|paged|sent|"
    "notif(?:y|ied)(?:dispatch)?|allocat(?:ed|ion)|etimes03|alarm(?:ierung|iert|ierungszeit|zeit)|alerte|declenche(?:ment)?|"
    "despach(?:o|ad[oa])|asigna(?:cion|d[oa])|activacion|allarme|allertamento|attivazione|alarmering|gealarmeerd",
    "en_route": "enroute|ontheway|respond(?:ed|ing)?|response|mobile|roll(?:ed|ing)?|depart(?:ed)?|activat(?:ed|ion)|"
    "enro?u?te?|etimes05|ausgeruckt|ausruck(?:en|zeit)|abfahrt|anfahrt|salida|encamino|partenza|vertrek|vertrokken|uitgerukt",
    "on_scene": "(?:on|at)scene|arriv(?:ed|al|ing|e)?|arr?vd?|scenearriv(?:ed|al)|attend(?:ed|ance)?|reached|"
    "arriv(?:ed|al)?(?:on|at)scene|onscn?|etimes06|(?:eintreffen|eintreffzeit|eingetroffen|ankunft)(?:e|einsatz)?(?:ort|"
    "stelle)?|(?:arrivee)?(?:sll|sur(?:leslieux|lieux|place))|arrivee|llegada(?:al)?(?:lugar|escena)?|en(?:lugar|escena)|arrivo(?:sulposto)?|sulposto|terplaatse|"
    "aankomst",
    "cleared": "(?:lu)?clear(?:ed)?|available|closed?|released?|free|inservice|end(?:ed)?|finish(?:ed)?|completed?|"
    "clrd?|backinservice|etimes13|frei(?:meldung|gemeldet)?|(?:einsatz)?ende|einsatzbereit|disponible|disponibilite|fin|"
    "libre|liberad[oa]|liber[oa]|fine(?:missione)?|vrij|beschikbaar",
}
# Columns of elapsed times by role: first and last stamp, a usual duration (s) and words of their names.
ELAPSED = {
    "handling_time": ("time", "dispatched", 90.0, "(?:call)?(?:process(?:ing)?|handling|queue)|dispatch(?:response)?"),
    "call_to_en_route": ("time", "en_route", 165.0, "calltomobile"),
    "total_response_time": ("time", "on_scene", 510.0, "total(?:response|resp)|calltoarrival|.*attendance"),
    "call_to_cleared": ("time", "cleared", 3090.0, "calltoclear"),
    "response_time": ("dispatched", "on_scene", 420.0, "response|resp"),
    "turnout_time": ("dispatched", "en_route", 75.0, "turnout|chute|reaction|activation|mobili[sz]ation"),
    "travel_time": ("en_route", "on_scene", 300.0, "travel|driv(?:e|ing)|journey"),
    "scene_time": ("on_scene", "cleared", 1500.0, "(?:on|at)?scene"),
    "service_time": ("dispatched", "cleared", 3000.0, "service|total|busy|committed|task|job"),
}
_SPAN = r"(?:time|tm|duration|interval|elapsed|in|min|mins|minutes|sec|secs|seconds|s|qy|hh|mm|ss)*"
SPAN = {role: rf"{_BEFORE}(?:{words}){_SPAN}" for role, (*_, words) in ELAPSED.items()}
UNITS = {"sec": 1.0, "min": 60.0, "hour|hrs": 3600.0}  # names may tell the unit, here in seconds
STATUSES = {  # a column of statuses has further words for stamps than names of columns have
    "dispatched": "di?sp(?:atch)?|dp|ds|d|assgn",
    "en_route": "er|enr|enrt|enroutetoscene|rsp|e",
    "on_scene": "os|onscn|ar|arv|arr|arrd|arrivedatscene|arrivedonscene",
    "cleared": "cl|clr|clrd|c|av|avl|avail|aq|back(?:in)?service|clearscene|availableinservice|(?:back)?inquarters",
}
STAMP = {role: rf"{_BEFORE}(?:{words}){_AFTER}" for role, words in STAMPS.items()}
GUESSES = {  # parts of unusual names such as "Arr" or "T_DISP": too vague to take a column, enough to suggest it
    "dispatched": "di?sp|assi|al[ae]r|mobi|tone|page|sent",
    "en_route": "en?r(?!e)|rout|rte|way|depa|roll",
    "on_scene": "arr|onsc|scn|scene|atten|reach",
    "cleared": "cle?a?r|avai?l|rele|fini|compl|free",
}
_UNITS = "(?:units|pumps|vehicles|apparatus)(?:sent|attending|dispatched|assigned|responding)?"
NUMBERS = {
    "service_min": ("servicemin", rf"(?:service|busy|occupied){_MINUTES}"),
    "units_sent": ("unitssent", rf"unitcount|{_UNITS}(?:count)?|(?:numberof|noof|num|no|count){_UNITS}"),
    "turnout_min": ("turnoutmin", rf"turnout{_MINUTES}"),
}
LABELS = {
    "incident": (
        rf"(?:cad|starfire)?inc(?:ident)?{_ID}|cad{_ID}|einsatz{_ID}|n(?:o|um|umero)?(?:inter|intervention|incident)e?",
        rf"(?:event|call|case|run|job|masterincident){_ID}",
    ),
    "unit": (
        "onsceneunit|firstunit(?:onscene|arrived)?|firstarrivingunit|prim(?:ary)?unit",
        (
            rf"(?:ems)?(?:unit|apparatus|vehicle|resource)(?:{_ID}|name)?|(?:unit|vehicle)?callsign|radioname|(?:funk)?rufname|"
            "fahrzeug|engin|vehicule|indicatif|unidad|movil|mezzo|voertuig|roepnummer|eenheid"
        ),
    ),
    "station": (
        "station|stationname|homestation|firststation",
        rf"station(?:area|{_ID})|.*deployedfromstation(?:name)?|(?:incident)?stationground",
    ),
    "priority": (
        "(?:final)?priority(?:level)?",
        "(?:call|initial|original)priority(?:level)?|(?:final)?severity(?:level)?(?:code)?|urgency",
    ),
    "first_due": (
        "(?:station)?firstdue(?:station|unit|company|engine)?|still(?:district|area)?|stationarea",
        "(?:fire|response|dispatch|station)?(?:beat|zone|district|area|box)(?:name|code|desc(?:ription)?)?",
    ),
    "agency": (
        "(?:responding|primary|lead|fire|ems)?(?:agency|juris(?:diction)?|dep(?:ar)?t(?:ment)?)(?:name|code)?|fdid",
    ),
    "status": (
        "(?:unit|event|call)?(?:status|activity|action|milestone)(?:code|type|name|desc(?:ription)?)?|eventtype",
    ),
    "patient": (
        rf"(?:patient|patientcarereport|pt|pcr|epcr|casualty|victim){_ID}?|patient(?:age|sex|gender)|age|sex|gender",
    ),
}
NAME = (
    "name|site|station|(?:rettungs|feuer)?wache|centre|caserne|kazerne|estacion|sede|nom|nombre|nome|naam",
    "(?:station|stn|site|facility|depot|base|post|hospital)(?:name|label)|label",
    rf"(?:station|site|facility|depot|base|post)(?:{_ID})?",
    _ID,
)
LON = (
    "lon|longitude|lng|long",
    rf"{_GEO}(?:lon|longitud(?:e|ine)?|lng|long|(?:geogr(?:aphische)?)lae?nge|lae?ngengrad|lengtegraad){_DEGREES}",
    rf"{_GEO}x{_DEGREES}|{_GEO}(?:easting|rechtswert).*|(?:utm|mga|osgb|bng|grid)e(?:ast)?",
)
LAT = (
    "lat|latitude",
    rf"{_GEO}(?:lat|latitud(?:e|ine)?|(?:geogr(?:aphische)?)breite|breitengrad|breedtegraad){_DEGREES}",
    rf"{_GEO}y{_DEGREES}|{_GEO}(?:northing|hochwert).*|(?:utm|mga|osgb|bng|grid)n(?:orth)?",
)
PLACE = (
    ".*(?:point|geom|geometry|latlng|lonlat|wkt|geocode|place|(?:lat(?:itude)?lon|coord|gps|koord|posi[tz]ion).*)",
    ".*(?:posicion|ubicacion|location|standort).*",
)

CALL_ROLES: tuple[str, ...] = ("time", "date", "lon", "lat", "place")
CALL_ROLES += (*STAMPS, *ELAPSED, "service_min", "units_sent", *LABELS, "status_time")
SITE_ROLES = ("name", "lon", "lat", "place", "turnout_min", "service_min", "agency")
OF_DISPATCH = ("first_due", "agency")  # taken last, so that no column of these names is missed elsewhere
EXPLAINED = {"time": "such as 2025-03-14 16:05", "lon": "longitude in degrees", "lat": "latitude in degrees"}
NUMERIC = re.compile(r"[-+]?\d+(?:[.,]\d+)?", re.ASCII)
SHORT = re.compile(r"[-+]?\d{1,3}(?:[.,]\d{0,2})?", re.ASCII)
FINE = re.compile(r"[-+]?\d{1,3}[.,]\d{3,}", re.ASCII)
WIDEST_DEGREES = 3
LONGEST_NAME = 80
CHOICE, KIND = "where ", "kind "  # begin the roles of columns by which rows are chosen, or that say what a row is
NO_CALL = re.compile(  # some logs have rows that are no calls; their words, in several languages
    r"(?i)\b(?:canc\w*|annul\w*|storn\w*|abgebrochen|abandon\w*|test\w*|tra?i?ning|trng|drill|exerci\w*|man(?:œ|oe)uvre|"
    r"übung|simulacro|duplicate|status move|move[ -]?up|out of service|stand[ -]?by|posting|(?:inter.?hosp\w*|inter.?"
    r"facility|patient|pt|routine|long distance|non.?emergency|medical) trans\w*|transfer|krankentransport|traslado|"
    r"trasferimento)\b"
)
CLOCKS = ("clock", "seconds")  # kinds of times of day
MOST_KINDS = 40  # words among the first cells of a column of kinds of rows: more are free text
ENOUGH = 0.8  # share of the first cells that must have a form, as some may be mistakes


class _Search:
    """The columns of one table: those taken so far, by role, and those that are still free."""

    def __init__(
        self, given: Mapping[str, str | None], names: Sequence[str], cells: Cells, time_format: str | None = None
    ) -> None:
        self.given, self.cells, self.time_format = given, cells, time_format
        self.taken = _match_columns(given, names)
        used = set(self.taken.values())
        self.free = [name for name in names if name not in used and (name.strip() or any(cells[name]))]
        self.kinds: dict[str, str] = {}
        self.forms = {name: _forms(name) for name in names}

    def kind(self, name: str) -> str:
        """Return the kind of a column's cells, see `_time_forms.kind`; numbers are times only under a name of times."""
        if name not in self.kinds:
            kind = _time_forms.kind(self.cells[name], self.time_format)
            if kind in ("number", "fraction"):
                named = "|".join((TIME[1], *STAMP.values()))
                timed = re.search("time|date|stamp|dt|alarm|arriv|clear|disp|scene|route", _plain(name))
                timed = timed or any(re.fullmatch(named, form) for form in self.forms[name])
                kind = ("moment" if kind == "number" else "clock") if timed else ""
            self.kinds[name] = kind
        return self.kinds[name]

    def has_kind(self, name: str, kinds: Sequence[str]) -> bool:
        return self.kind(name) in kinds

    def stamps(self, name: str, *kinds: str) -> bool:
        """Return whether a column may hold times of a unit, of one of the ``kinds`` (default: dated or not)."""
        return self.kind(name) in (kinds or ("moment", "clock")) and not _ELSEWHERE.search(_plain(name))

    def lasts(self, name: str, role: str) -> bool:
        """Return whether a column holds elapsed times, such as those of a role of `ELAPSED`."""
        kind, typical = self.kind(name), ELAPSED[role][2]
        spans = _span(name) == ELAPSED[role][:2]
        numbers = kind == "seconds" or (not kind and self._is(NUMERIC.fullmatch, name))
        if numbers or kind == "spelt":
            return (
                kind == "spelt" or spans or re.search("time|tm|dur|interval|elapsed|sec|min", name.lower()) is not None
            )
        return kind == "clock" and (spans or _time_forms.is_elapsed(self._written(name), self._starts(), typical))

    def suits(self, name: str, role: str) -> bool:
        """Return whether a column may have a role; a column of statuses is used only if the log has no stamps."""
        if role == "status":
            words = any(map(stamp_of, set(texts(self.cells[name]))))
            return words and "incident" in self.taken and not STAMPS.keys() & self.taken.keys()
        return role != "patient" or "incident" in self.taken

    def _written(self, name: str) -> list[str | None]:
        return _time_forms.written_cells(self.cells[name])

    def _starts(self) -> FloatArray:
        """Return the times of day of the calls in the first rows."""
        name = self.taken.get("time", self.taken.get("date"))
        return np.array(np.nan) if name is None else _time_forms.clocks(self._written(name), self.time_format)

    def first(
        self, patterns: Iterable[str], fits: Callable[[str], bool] = lambda _: True, forms_of: int = 2
    ) -> str | None:
        """Return a free column that ``fits`` and of which one of the first ``forms_of`` forms matches a pattern."""
        for pattern in patterns:
            for name in self.free:
                if any(re.fullmatch(pattern, form) for form in self.forms[name][:forms_of]) and fits(name):
                    return name
        return None

    def take(self, role: str, name: str | None) -> None:
        """Take a column for a role, unless it is None or the user decided on the role."""
        if name is not None and role not in self.given:
            self.taken[role] = name
            self.free.remove(name)

    def take_place(self) -> None:
        """Take columns of longitude and latitude, or one that holds both."""
        if "place" not in self.taken:
            self.take("lon", self.first(LON, self._coordinate))
            self.take("lat", self.first(LAT, self._coordinate))
        if not {"lon", "lat"} <= self.taken.keys() and "place" not in self.given:
            both = self.first(PLACE, lambda name: self._is(place, name))
            self.take("place", both or next((name for name in self.free if self._is(_has_order, name)), None))

    def take_numbers(self, *roles: str) -> None:
        """Take columns of numbers; cells under the usual name are not checked yet, so that errors can name bad ones."""
        for role in roles:
            usual, *further = NUMBERS[role]
            self.take(role, self.first([usual]) or self.first(further, lambda name: self._is(NUMERIC.fullmatch, name)))

    def _coordinate(self, name: str) -> bool:
        """Return whether a column may hold one coordinate; x and y look like km if rounded and spread widely."""
        if len(_plain(name)) == 1 and self._is(SHORT.fullmatch, name):
            values = [float(cell.replace(",", ".")) for cell in filter(SHORT.fullmatch, texts(self.cells[name]))]
            return max(values) - min(values) < WIDEST_DEGREES and any(value % 1 for value in values)
        return _plain(name) in ("lon", "lat") or self._is(DECIMAL.fullmatch, name) or not self._is(place, name)

    def _is(self, form: Callable[[str], object], name: str) -> bool:
        cells = list(self.cells[name])
        filled = [text for text, empty in zip(texts(cells), blank(cells), strict=True) if not empty]
        return bool(filled) and sum(form(text) is not None for text in filled) >= ENOUGH * len(filled)

    def unused(self) -> dict[str, str]:
        """Return the columns of times that were not taken, each with the missing stamp that it may be, or ""."""
        missing, found = [role for role in STAMPS if role not in self.taken], dict[str, str]()
        for name in (name for name in self.free if self.kind(name) in ("moment", "clock")):
            free = (role for role in missing if role not in found.values())
            found[name] = next((role for role in free if re.search(GUESSES[role], _plain(name))), "")
        return found

    def check(self, where: str, names: Sequence[str], needed: Iterable[str]) -> dict[str, str]:
        """Return the columns taken; raise one error that names everything missing, and the option that fills it."""
        placed = ("lon", "lat") if "place" in self.taken else ()
        absent = [role for role in needed if role not in (*self.taken, *placed)]
        if not absent:
            return self.taken
        option, likely = self._suggest(absent)
        lacks = " and ".join(f"a column {role!r} ({EXPLAINED[role]})" for role in absent)
        hint = ""
        if "time" in absent and self.first(["demand|calls|count|population"]):
            hint = " Demand by place is not a log: pass it to `City.from_frames` with a column 'arrival_rate'."
        rest = f"{likely}; {list_columns(names)}.{hint}"
        raise InputError(Message(f"{where} needs {lacks}. Name each by ", option, rest))

    def _suggest(self, absent: Sequence[str]) -> tuple[Argument, str]:
        """Return the option that names the absent columns, and in words which columns they may be."""
        times = [name for name in self.free if "time" in absent and self.kind(name) in ("moment", "date")]
        fine = [name for name in self.free if {"lon", "lat"} & set(absent) and self._is(FINE.fullmatch, name)]
        option = Argument("columns", {role: times[0] if role == "time" and times else ... for role in absent})
        return option, f" (perhaps {', '.join(map(quote, [*times[1:], *fine][:5]))})" if times[1:] or fine else ""


def call_columns(
    columns: Mapping[str, str | None] | None,
    time_format: str | None,
    unused: dict[str, str],
    chosen_by: Sequence[str],
) -> Choose:
    """Return the function that chooses the columns of a log of calls.

    ``columns`` are those that the user named, by role. ``unused`` is filled with the columns of times that were not
    taken (`_Search.unused`). Rows are chosen by the columns ``chosen_by``, whose roles are `CHOICE` and their names.
    """
    given = _check_columns(columns, CALL_ROLES)

    def choose(where: str, names: Sequence[str], cells: Cells) -> dict[str, str]:
        search = _Search(given, names, cells, time_format)
        search.take_place()
        _take_time(search)
        search.take_numbers("service_min", "units_sent")
        _take_elapsed(search)
        _take_stamps(search)
        _take_labels(search)
        for name in chosen_by:
            search.taken[CHOICE + name] = _column(name, names, "`where`")
        search.taken |= {KIND + name: name for name in search.free if _has_no_calls(cells[name])}
        for role in OF_DISPATCH:
            search.take(role, search.first(LABELS[role]))
        unused.update(search.unused())
        return search.check(where, names, ("time", "lon", "lat"))

    return choose


def _has_no_calls(cells: Sequence[object]) -> bool:
    """Return whether a column holds kinds of rows, some of which may be no calls."""
    words = {text for text in map(str, cells) if len(text) <= LONGEST_NAME}
    return len(words) <= MOST_KINDS and any(map(NO_CALL.search, words))


def _take_time(search: _Search) -> None:
    """Take a column of times, or one of times of day beside one of dates, or one of dates."""
    day = search.first(DATE, partial(search.has_kind, kinds=("date",)))
    if "time" in search.given:
        if "time" in search.taken and search.has_kind(search.taken["time"], CLOCKS):
            search.take("date", day)
        return
    moment = search.first(TIME[:1], partial(search.has_kind, kinds=("moment", "date")))
    moment = moment or search.first(TIME, lambda name: search.stamps(name, "moment"), 3)
    if moment is None and (day is not None or "date" in search.taken):
        moment = search.first(TIME, lambda name: search.has_kind(name, CLOCKS) and _span(name) is None, 3)
        search.take("date", None if moment is None else day)
    # whatever has the usual name is taken for the time, so that cells that are no times are found
    search.take("time", moment or day or search.first([*TIME[:1], "date"]))


def _take_elapsed(search: _Search) -> None:
    """Take columns of elapsed times, but for a date of the calls without a clock first the time of dispatch."""
    taken, decided = search.taken, {"date", "time"} & search.given.keys()
    if "time" in taken and not decided and "date" not in taken and search.kind(taken["time"]) == "date":
        clock = search.first([STAMP["dispatched"]], lambda name: search.kind(name) == "clock", 3)
        if clock is not None:
            taken["date"], taken["time"] = taken["time"], clock
    for role, pattern in SPAN.items():
        named = next((n for n in search.free if _span(n) == ELAPSED[role][:2] and search.lasts(n, role)), None)
        search.take(role, named or search.first([pattern], partial(search.lasts, role=role)))


def _take_stamps(search: _Search) -> None:
    """Take columns of stamps, and one for the time of the call if there is none so far."""
    for role in STAMPS:
        search.take(role, search.first([STAMP[role]], search.stamps, 3))
    if "time" in search.taken or "time" in search.given:
        return
    times = [name for name in search.free if search.stamps(name, "moment")]
    if "dispatched" in search.taken:
        search.taken["time"] = search.taken["dispatched"]  # the log has no earlier time of the call
    elif len(times) == 1:
        search.take("time", times[0])


def _take_labels(search: _Search) -> None:
    """Take columns of words, and of the times of statuses."""
    for role in (role for role in LABELS if role not in OF_DISPATCH):
        search.take(role, search.first(LABELS[role], partial(search.suits, role=role)))
    if "status" in search.taken:
        named = [".*(?:status|event|action|activity|stamp).*"]
        search.take("status_time", search.first(named, lambda name: search.kind(name) == "moment"))


def site_columns(columns: Mapping[str, str | None] | None) -> Choose:
    """Return the function that chooses the columns of a table of stations, as `call_columns` does."""
    given = _check_columns(columns, SITE_ROLES)

    def choose(where: str, names: Sequence[str], cells: Cells) -> dict[str, str]:
        search = _Search(given, names, cells)
        search.take_place()
        search.take("name", search.first(NAME))
        search.take("agency", search.first(LABELS["agency"]))
        search.take_numbers("turnout_min", "service_min")
        return search.check(where, names, ("lon", "lat"))

    return choose


def _has_order(text: str) -> bool | None:
    """Return True for a place whose form fixes the order of its numbers; None for other cells."""
    found = place(text)
    return True if found and not found.pair else None


def is_district(name: str) -> bool:
    """Return whether the name of a column may be that of any districts, not only of those of first-due stations."""
    first_due, any_district = ([re.fullmatch(p, form) for form in _forms(name)] for p in LABELS["first_due"])
    return any(any_district) and not any(first_due)


def _plain(name: str) -> str:
    """Return a name in lower case, with plain letters and digits only, cut at `LONGEST_NAME` characters."""
    return re.sub(r"[\W_]+", "", _unaccent(name).lower())[:LONGEST_NAME]


def _unaccent(name: str) -> str:
    """Return a name without accents."""
    return "".join(c for c in unicodedata.normalize("NFKD", name.replace("ß", "ss")) if not unicodedata.combining(c))


def _unbracket(name: str) -> str:
    """Return a name without parts in brackets, unless nothing else is left."""
    return next((short for short in [re.sub(r"\([^()]*\)|\[[^\[\]]*\]", " ", name)] if _plain(short)), name)


def _words(name: str) -> list[str]:
    """Return the words of a name, separated by signs or capitals; only `LONGEST_NAME` characters are read."""
    found = re.findall(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*|\d+", _unaccent(_unbracket(name))[:LONGEST_NAME])
    return [word.lower() for word in found]


def _forms(name: str) -> tuple[str, ...]:
    """Return the forms of a name that patterns may match: whole, without brackets, and only its distinctive words."""
    words = [word for word in _words(name) if not _SAY_NOTHING.fullmatch(word)]
    telling = [word for word in words if not _SAY_LITTLE.fullmatch(word)] or words
    return _plain(name), _plain(_unbracket(name)), "".join(telling)


@lru_cache(maxsize=10_000)
def _span(name: str) -> tuple[str, str] | None:
    """Return the first and last stamp of an elapsed time with a name such as "Call to Clear"; None for other names."""
    words = _words(name)
    for k in (k for k, word in enumerate(words) if word in ("to", "until", "bis")):
        start = next(filter(None, (_moment_of(words[j:k]) for j in range(k))), None)
        end = next(filter(None, (_moment_of(words[k + 1 : j]) for j in range(len(words), k + 1, -1))), None)
        if start and end:
            return start, end
    return None


def _moment_of(words: Sequence[str]) -> str | None:
    """Return the stamp, or "time", that words name; None if they name none, or are as general as "time"."""
    form = _forms(" ".join(words))[-1]
    if _ELSEWHERE.search(form) or all(map(_SAY_NOTHING.fullmatch, words)):
        return None
    patterns = {**STAMP, "time": "|".join(TIME[1:3])}
    return next((role for role, pattern in patterns.items() if re.fullmatch(pattern, form)), None)


def _check_columns(columns: Mapping[str, str | None] | None, roles: Sequence[str]) -> dict[str, str | None]:
    """Return the columns that the user named; raise if they are not a mapping from roles to names."""
    given = {} if columns is None else columns
    if not isinstance(given, Mapping) or not all(isinstance(name, str | None) for name in given.values()):
        wrong: object = columns
    elif (wrong := next((role for role in given if role not in roles), None)) is None:
        return dict(given)
    raise InputError(f"`columns` must map words of {', '.join(roles)} to names of columns or None; got {quote(wrong)}.")


def _match_columns(given: Mapping[str, str | None], names: Sequence[str]) -> dict[str, str]:
    """Return the columns that the user named, as they stand in the table; "none" and "" leave a role out."""
    none = {"", "none"} - {name.strip().lower() for name in names}
    wanted = {role: name for role, name in given.items() if name is not None and name.strip().lower() not in none}
    return {role: _column(name, names, repr(role)) for role, name in wanted.items()}


def _column(name: str, names: Sequence[str], role: str) -> str:
    """Return a column as it stands in the table; raise if there is none of this name."""
    known = {_plain(name): name for name in names} | {name.strip().lower(): name for name in names}
    column = known.get(name.strip().lower()) or known.get(_plain(name))
    if column is None:
        raise InputError(f"there is no column {quote(name)} to take for {role}; {list_columns(names)}.")
    return column


def stamp_of(status: str) -> str | None:
    """Return the stamp that a word for the status of a unit stands for, or None."""
    word = _plain(status)
    if _ELSEWHERE.search(word):
        return None
    return next((role for role in STAMPS if re.fullmatch(f"{STAMP[role]}|{STATUSES[role]}", word)), None)
