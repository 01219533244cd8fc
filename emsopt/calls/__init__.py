"""Build a `City` from a log of past calls and a table of stations.

``read_calls``       a log (time, place, stamps) from CSV, Excel, Parquet or GeoJSON
``read_stations``    a table of stations, where units wait, from such files
``check_calls``      likely mistakes in a log and a table of stations
``aggregate_calls``  calls per atom (cell or area), weekday and hour, as a `Demand`
``city_from_calls``  a `City` from a log and a table of stations, in one step
``held_out_weeks``   calls of each week, and rates estimated from all others, to test decisions
``calibrate``        turnout, travel and service times from the stamps of a log, as a `Fit`
``back_test``        the values of a `Fit` beside those of a later log
``replay``           response times of the calls of a log with another deployment, by simulation
"""

from .areas import read_areas as read_areas
from .back_test import BackTest as BackTest
from .back_test import back_test
from .calibration import Fit as Fit
from .calibration import calibrate
from .checks import Checks as Checks
from .checks import check_calls
from .demand import Demand as Demand
from .demand import HeldOutCalls as HeldOutCalls
from .demand import aggregate_calls, city_from_calls, held_out_weeks
from .log import CallLog as CallLog
from .log import read_calls, read_stations
from .profile import WeeklyProfile as WeeklyProfile
from .replaying import Replay as Replay
from .replaying import replay

__all__ = ["aggregate_calls", "back_test", "calibrate", "check_calls", "city_from_calls", "held_out_weeks"]
__all__ += ["read_calls", "read_stations", "replay"]
