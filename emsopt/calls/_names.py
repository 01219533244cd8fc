"""Patterns by which the column of each role, such as the time of a call, is recognised from its name.

Names are compared in lower case, without accents, punctuation and text in brackets: ``Date_Time_Of_Event`` as
"datetimeofevent". Names of times are also compared without words that do not distinguish them:
``arrival_time_primary_unit`` as "arrival". A pattern must match a whole name; earlier patterns are preferred.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

LONGEST_NAME = 80
# Words around the telling one in names such as First_Unit_On_Scene_DtTm, Longitude_WGS84 and IncidentNumber.
_PREFIX = (
    r"(?:date|time|dt|tm|stamp|and|of|the|to|first|1st|last|initial|primary|unit|pump|crew|vehicle|call|incident|event|"
    r"alarm|cad|psap|911|999|112)*"
)
_COMMON_WORDS = re.compile(  # words in names of all kinds of times, which distinguish none, in several languages
    "date|time|dt|tm|dttm|datetime|timestamp|stamp|ts|utc|local|actual|of|the|by|first|prim(?:ary)?|initial|units?|pump|"
    "crew|vehicle|apparatus|resource|cad|ems|psap|911|999|112|du|des?|d|la|les?|l|del|al|el|di|il|der|am|um|y|datum|"
    "uhrzeit|zeit|zeitpunkt|heure|horaire|fecha|hora|data|ora|tijd|tijdstip|fahrzeug|rettungsmittel|engin|vehicule|unidad|"
    "movil|ambulanc(?:ia|e)|mezzo|voertuig|eenheid"
)
_CALL_WORDS = re.compile("call|incidente?|event|alarm|emergency|appel|intervention|einsatz|llamada|chiamata|melding")
# Times that are no stamps of a unit: of the patient, of the hospital, of leaving the scene.
OTHER_TIMES = re.compile(
    "hosp|patient|dest|facil|transp|transf|cancel|birth|dob|updat|modif|zielort|klinik|krankenhaus|hopital|"
    "(?:left|leav(?:e|ing)|depart(?:ed|ing|ure)?)(?:from|the)*scene|staging|staged"
)
_TIME_SUFFIX = r"(?:date|time|dt|tm|ts|stamp|and|at|utc|local|actual)*"
_SUFFIX = r"(?:date|time|dt|tm|ts|stamp|and|at|utc|local|actual|on|to|scene|unit|first)*"
_PLACE_PREFIX = (
    "(?:geo|gps|utm|mga|osgb|bng|grid|coo?rd|koord|wgs|84|incident|call|event|scene|address|location|site|map|start|"
    "centroid|point|einsatzort|gk)*"
)
_DEGREE_SUFFIX = (
    "(?:wgs84|dd|deg|degrees|decimal|micro|e[567]|coo?rd|coordinate|coordonnee|koord(?:inate)?|coordenada|utm|lambert|"
    "l?93|rd|m)*"
)
_ID = "(?:no|num|nbr|nr|number|nummer|numero|id|key|ref|reference)"
_MINUTES = r"(?:time|duration)?(?:in)?(?:min|mins|minutes)"

_CALL = "call|event|incident|alarm|report(?:ed)?|creat(?:ed?|ion)|open(?:ed)?|entry|entered|start(?:ed)?|request(?:ed)?"
TIME_PATTERNS = (
    "time|datetime|timestamp|dttm",
    (
        rf"{_PREFIX}(?:receiv(?:ed)?|re?c(?:ei)?vd?|receipt|pickup|ofcall|connect(?:ed)?|t0|(?:not|an)?ruf(?:eingang|annahme)|"
        r"(?:meldungs)?eingang(?:notruf)?|priseappel|reception|recu|recepcion|recibida|ricezione|ricevuta|aangenomen|etimes01)"
        rf"{_TIME_SUFFIX}"
    ),
    rf"{_PREFIX}(?:{_CALL}|(?:not|an)ruf|einsatzbeginn|appel|llamada|chiamata|melding){_TIME_SUFFIX}",
    rf"{_PREFIX}(?:date|day|time){_TIME_SUFFIX}",
)
DATE_PATTERNS = ("date", "datum|fecha|data|jour|giorno", *TIME_PATTERNS)
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
ELAPSED_ROLES = {
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
_DURATION_WORDS = r"(?:time|tm|duration|interval|elapsed|in|min|mins|minutes|sec|secs|seconds|s|qy|hh|mm|ss)*"
ELAPSED_PATTERNS = {role: rf"{_PREFIX}(?:{words}){_DURATION_WORDS}" for role, (*_, words) in ELAPSED_ROLES.items()}
UNIT_SECONDS = {"sec": 1.0, "min": 60.0, "hour|hrs": 3600.0}  # words in names of elapsed times, and their seconds
STATUS_WORDS = {  # a column of statuses has further words for stamps than names of columns have
    "dispatched": "di?sp(?:atch)?|dp|ds|d|assgn",
    "en_route": "er|enr|enrt|enroutetoscene|rsp|e",
    "on_scene": "os|onscn|ar|arv|arr|arrd|arrivedatscene|arrivedonscene",
    "cleared": "cl|clr|clrd|c|av|avl|avail|aq|back(?:in)?service|clearscene|availableinservice|(?:back)?inquarters",
}
STAMP_PATTERNS = {role: rf"{_PREFIX}(?:{words}){_SUFFIX}" for role, words in STAMPS.items()}
STAMP_HINTS = {  # parts of unusual names such as "Arr" or "T_DISP": too vague to take a column, enough to suggest it
    "dispatched": "di?sp|assi|al[ae]r|mobi|tone|page|sent",
    "en_route": "en?r(?!e)|rout|rte|way|depa|roll",
    "on_scene": "arr|onsc|scn|scene|atten|reach",
    "cleared": "cle?a?r|avai?l|rele|fini|compl|free",
}
_UNIT_WORDS = "(?:units|pumps|vehicles|apparatus)(?:sent|attending|dispatched|assigned|responding)?"
NUMBER_ROLES = {
    "service_min": ("servicemin", rf"(?:service|busy|occupied){_MINUTES}"),
    "units_sent": ("unitssent", rf"unitcount|{_UNIT_WORDS}(?:count)?|(?:numberof|noof|num|no|count){_UNIT_WORDS}"),
    "turnout_min": ("turnoutmin", rf"turnout{_MINUTES}"),
}
# Roles of text, which the details of a log keep under these names, but for those that joining rows uses up.
JOINING_ROLES = ("incident", "status", "patient")
TEXT_ROLES = {
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
NAME_PATTERNS = (
    "name|site|station|(?:rettungs|feuer)?wache|centre|caserne|kazerne|estacion|sede|nom|nombre|nome|naam",
    "(?:station|stn|site|facility|depot|base|post|hospital)(?:name|label)|label",
    rf"(?:station|site|facility|depot|base|post)(?:{_ID})?",
    _ID,
)
LON_PATTERNS = (
    "lon|longitude|lng|long",
    rf"{_PLACE_PREFIX}(?:lon|longitud(?:e|ine)?|lng|long|(?:geogr(?:aphische)?)lae?nge|lae?ngengrad|lengtegraad){_DEGREE_SUFFIX}",
    rf"{_PLACE_PREFIX}x{_DEGREE_SUFFIX}|{_PLACE_PREFIX}(?:easting|rechtswert).*|(?:utm|mga|osgb|bng|grid)e(?:ast)?",
)
LAT_PATTERNS = (
    "lat|latitude",
    rf"{_PLACE_PREFIX}(?:lat|latitud(?:e|ine)?|(?:geogr(?:aphische)?)breite|breitengrad|breedtegraad){_DEGREE_SUFFIX}",
    rf"{_PLACE_PREFIX}y{_DEGREE_SUFFIX}|{_PLACE_PREFIX}(?:northing|hochwert).*|(?:utm|mga|osgb|bng|grid)n(?:orth)?",
)
PLACE_PATTERNS = (
    ".*(?:point|geom|geometry|latlng|lonlat|wkt|geocode|place|(?:lat(?:itude)?lon|coord|gps|koord|posi[tz]ion).*)",
    ".*(?:posicion|ubicacion|location|standort).*",
)
NON_CALL_WORDS = re.compile(  # some logs have rows that are no calls; their words, in several languages
    r"(?i)\b(?:canc\w*|annul\w*|storn\w*|abgebrochen|abandon\w*|test\w*|tra?i?ning|trng|drill|exerci\w*|man(?:œ|oe)uvre|"
    r"übung|simulacro|duplicate|status move|move[ -]?up|out of service|stand[ -]?by|posting|(?:inter.?hosp\w*|inter.?"
    r"facility|patient|pt|routine|long distance|non.?emergency|medical) trans\w*|transfer|krankentransport|traslado|"
    r"trasferimento)\b"
)


def is_district(name: str) -> bool:
    """Return whether the name of a column is that of districts, such as "beat", which stations need not have."""
    first_due, any_district = ([re.fullmatch(p, form) for form in name_forms(name)] for p in TEXT_ROLES["first_due"])
    return any(any_district) and not any(first_due)


def plain_name(name: str) -> str:
    """Return a name in lower case without accents, spaces and punctuation, cut at `LONGEST_NAME` characters."""
    return re.sub(r"[\W_]+", "", _remove_accents(name).lower())[:LONGEST_NAME]


def _remove_accents(name: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", name.replace("ß", "ss")) if not unicodedata.combining(c))


def _remove_brackets(name: str) -> str:
    """Remove parts in brackets from a name, unless nothing else would be left."""
    short = re.sub(r"\([^()]*\)|\[[^\[\]]*\]", " ", name)
    return short if plain_name(short) else name


def _words(name: str) -> list[str]:
    """Return the words of a name, in lower case, split at punctuation and capitals, of its first 80 characters."""
    plain = _remove_accents(_remove_brackets(name))[:LONGEST_NAME]
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*|\d+", plain)]


def name_forms(name: str) -> tuple[str, ...]:
    """Return the forms of a name that patterns may match: all of it, without brackets, and its distinctive words."""
    words = [word for word in _words(name) if not _COMMON_WORDS.fullmatch(word)]
    telling = [word for word in words if not _CALL_WORDS.fullmatch(word)] or words
    return plain_name(name), plain_name(_remove_brackets(name)), "".join(telling)


@lru_cache(maxsize=10_000)
def span_roles(name: str) -> tuple[str, str] | None:
    """Return the roles of the first and last stamp of a time such as "Call to Clear"; None for names without two."""
    words = _words(name)
    for k in (k for k, word in enumerate(words) if word in ("to", "until", "bis")):
        start = next(filter(None, (_stamp_of_words(words[j:k]) for j in range(k))), None)
        end = next(filter(None, (_stamp_of_words(words[k + 1 : j]) for j in range(len(words), k + 1, -1))), None)
        if start and end:
            return start, end
    return None


def _stamp_of_words(words: Sequence[str]) -> str | None:
    """Return the role of the stamp that words name, "time" for the time of the call; None if they name none."""
    form = name_forms(" ".join(words))[-1]
    if OTHER_TIMES.search(form) or all(map(_COMMON_WORDS.fullmatch, words)):
        return None
    patterns = {**STAMP_PATTERNS, "time": "|".join(TIME_PATTERNS[1:3])}
    return next((role for role, pattern in patterns.items() if re.fullmatch(pattern, form)), None)


def seconds_per_unit(name: str) -> float | None:
    """Return the seconds per unit, such as 60 for "Travel Time (min)"; None if the name of the column has no unit."""
    return next((seconds for words, seconds in UNIT_SECONDS.items() if re.search(words, name)), None)


def stamp_of_status(status: str) -> str | None:
    """Return the role of the stamp at which a unit enters a status, such as "on_scene" for "Arrived", or None."""
    word = plain_name(status)
    if OTHER_TIMES.search(word):
        return None
    return next((role for role in STAMPS if re.fullmatch(f"{STAMP_PATTERNS[role]}|{STATUS_WORDS[role]}", word)), None)
