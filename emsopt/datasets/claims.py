"""Tables of published papers, and the register of their claims with our verdicts."""

from typing import TYPE_CHECKING

from .._files import locate
from ..errors import InputError
from ..errors._validate import choice, whole_number

if TYPE_CHECKING:
    import pandas as pd

VERDICTS = ("reproduced", "in part", "not reproduced", "refuted", "cannot be tested")
"""The verdicts of `load_claims`, which explains them.

>>> set(load_claims()["verdict"]) == set(VERDICTS)
True
"""


def paper_table(number: int) -> "pd.DataFrame":
    """Return a table of "Optimizing Server Locations in Spatial Queues", of which there are two versions.

    Parameters
    ----------
    number : {1, 2, 3}
        1: St. Paul by offered load per unit (both versions); 2: utilisation of ambulances in 17 cities of the United
        States; 3: St. Paul by service rate with bounds (first version only).

    Returns
    -------
    DataFrame
        1: ``offered_load`` (rounded; 0.225 is the original load, more precisely 0.2231), ``optimum_min`` and
        ``p_median_min``, the mean response (min) of the best and of the p-median deployment. 2: ``city``;
        ``calls_per_year``; ``calls_per_minute``; ``ambulances``; ``utilization``, a fraction, as printed; and ``note``,
        which is empty unless the row contradicts itself. 3: ``mu_per_day`` (42.17 is the original rate, printed as
        42), ``optimum_min``, ``lower_bound_min``, ``upper_bound_min``. The methods SparBL and GP-pM reach the
        optimum in every row of tables 1 and 3.

    Notes
    -----
    At the original rate, table 1 lists 6.01 min for the p-median deployment, but table 3 lists 5.92 min for the same
    quantity, its upper bound. The published inputs yield 5.92 min.

    The paper estimates table 2 from the survey of Firehouse Magazine, 2019, and assumes St. Paul's service time for
    every city. ``calls_per_year / (365 * ambulances * 42.17)`` is within 0.004 of every ``utilization``, but no row
    agrees to the printed digit: the first seven rows are lower by at most 0.6 %, as if service took 34.0 min, and the
    others higher by up to 1.2 %, as if it took 34.46 min, whereas 1440/42.17 is 34.15 min. St. Paul's 0.07 calls per
    minute should read 0.06.

    Examples
    --------
    >>> import emsopt as eo
    >>> table = eo.datasets.paper_table(1)
    >>> table.loc[table["offered_load"] == 0.225, ["optimum_min", "p_median_min"]].values.tolist()
    [[5.86, 6.01]]
    """
    import pandas as pd

    number = whole_number(number, "number", 1, 3)
    # without a note, the text is empty instead of NaN
    return pd.read_csv(locate.package_file("papers", f"table_{number}.csv"), keep_default_na=False)


def load_claims(paper: str = "", place: str | tuple[str, ...] = "") -> "pd.DataFrame":
    """Return the register of the claims of five papers, with our results, verdicts and evidence.

    Parameters
    ----------
    paper : str
        "server locations" is "Optimizing Server Locations in Spatial Queues"; "server locations, version one" is its
        first version; "navigation" is "Bayesian Analysis of Combinatorial Gaussian Process Bandits"; "bocvs" is
        "Bayesian Optimization for Unknown Cost-Varying Variable Subsets with No-Regret Costs"; "boke" is "Bayesian
        Optimization by Kernel Regression and Density-based Exploration". All five if left out.
    place : str or tuple of str
        Return only claims whose place in the paper begins so, such as "Table 1" or ("Table 1", "Figure 2").

    Returns
    -------
    DataFrame
        One row per claim, in the order of the papers. No two claims of a paper have the same ``place``. ``claim`` is
        in our words; ``theirs`` and ``ours`` are the numbers that the paper and this package give, with the ``error``
        of ours. ``verdict`` is one of `VERDICTS`, and ``why`` gives the reason. ``evidence`` is a test of the claim
        (``tests/FILE.py::NAME``) or a section of a notebook (``notebooks/FILE.ipynb#HEADING``). ``same_as`` is the
        place of the row of version two that states the same claim; only rows of version one have it, and rows without
        it are the distinct claims. All columns are strings; what does not apply is empty.

    Notes
    -----
    Verdicts are on the whole of ``claim``, in the setting that the paper gives; where the paper leaves a setting open,
    ``why`` says which one we used.

    - "reproduced": all of the claim holds. A number lies within our error or the precision printed. A theorem or lemma
      held wherever its statement was checked, also if its bound is loose; ``why`` says how loose. A comparison points
      the stated way, beyond chance.
    - "in part": a part of the claim holds, which ``why`` names: one half, some of the cases, another constant or symbol
      than printed, or all of it with a repair of ours. So is a formula that one changed symbol, sign or index mends,
      unless its printed form is what is claimed; ``why`` names the change. One without a term or factor is "refuted".
    - "not reproduced": we tried what is stated and do not see the effect, or see the contrary, but something that the
      paper leaves open (a constant, a data set, a form of a function, a starting design) may explain it.
    - "refuted": a counterexample that meets all assumptions, a step of a proof that is wrong, or a number that
      contradicts the paper's own inputs or other numbers. A comparison is refuted only in the paper's own setting, with
      all of its constants known. If a proof is wrong but its statement holds, the step has a row of its own.
    - "cannot be tested": nothing that we can run decides it, such as a statement about complexity classes; ``why``
      gives the reason, and what was checked instead.

    Chance is judged by Student's t: of n paired runs, a difference counts if its 95 % interval with n - 1 degrees of
    freedom excludes zero. Otherwise the two are tied. A tie supports "as good as" and never "better".

    Evidence on what an algorithm achieves runs it or reads its stored runs; on a printed step it may be arithmetic.
    ``tests/test_played_again.py`` repeats the first rounds of some stored runs.

    Of St. Paul, "authors' demand" is ``load_st_paul("published")`` and "proxy demand" the default. GP-pM "as printed"
    is ``GPpM(literal=True)``, and "with our repairs" the default. One parameter of the proxy demand was fitted to three
    of the papers' values, so agreement on it is partly circular. "The hill" is `problems.hill_control`.

    Examples
    --------
    >>> claim = load_claims("server locations", "Section 7.2, optimum").iloc[0]
    >>> claim.theirs, claim.ours, claim.verdict
    ('5.86 min', "5.86 min (authors' demand); 5.93 (proxy demand)", 'reproduced')
    """
    import pandas as pd

    # all as text, so that numbers stay as printed, such as 6.0
    claims = pd.read_csv(locate.package_file("papers", "claims.csv"), dtype=str, keep_default_na=False)
    if paper:
        claims = claims[claims["paper"] == choice(paper, "paper", tuple(claims["paper"].unique()))]
    found = claims[claims["place"].str.startswith(place)]
    if found.empty:
        where = f" of {paper!r}" if paper else ""
        raise InputError(f"`place` must be the beginning of a claim's place{where}, such as 'Table 1'; got {place!r}.")
    return found
