"""Loaders: cities, tables and claims of published papers, road networks, stored studies and logs of calls.

Sources and licences of all data are in ``emsopt/data/LICENSES.md``.
"""

from .cities import ROUTES, grid_city, load_auckland, load_roads, load_st_paul
from .claims import VERDICTS, load_claims, paper_table
from .exercises import check_answer
from .logs import practice_calls, san_jose_calls, write_templates
from .studies import load_study

__all__ = ["ROUTES", "VERDICTS", "check_answer", "grid_city", "load_auckland", "load_claims", "load_roads"]
__all__ += ["load_st_paul", "load_study", "paper_table", "practice_calls", "san_jose_calls", "write_templates"]
