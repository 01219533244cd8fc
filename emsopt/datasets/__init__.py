"""Loaders: cities, tables and claims of published papers, road networks, stored studies and logs of calls.

==========================  ==================================================================================
`load_st_paul`              St. Paul, Minnesota: 71 atoms, 17 sites for 9 units; demand is a proxy by default
`load_auckland`             Auckland, New Zealand, with hospitals and priorities, for `emsopt.operations`
`grid_city`                 a random city on a square grid
`paper_table`               tables of "Optimizing Server Locations in Spatial Queues", to compare your figures with
`load_claims`               what five papers claim: their number, ours, a verdict, and the evidence
`load_study`                stored results of the package's own studies
`load_roads`                the road networks of Monaco, Luxembourg and Auckland, and `ROUTES`
`practice_calls`            a log of calls and the stations of a fictitious town, with some errors to find
`san_jose_calls`            two weeks of calls and the stations of a real city, with all recorded times
`write_templates`           template files for your own calls and stations
`check_answer`              check an answer to an exercise of the notebooks
==========================  ==================================================================================

Sources and licences of all data are in ``emsopt/data/LICENSES.md``.
"""

from .cities import ROUTES, grid_city, load_auckland, load_roads, load_st_paul
from .claims import VERDICTS, load_claims, paper_table
from .exercises import check_answer
from .logs import practice_calls, san_jose_calls, write_templates
from .studies import load_study

__all__ = ["ROUTES", "VERDICTS", "check_answer", "grid_city", "load_auckland", "load_claims", "load_roads"]
__all__ += ["load_st_paul", "load_study", "paper_table", "practice_calls", "san_jose_calls", "write_templates"]
