r"""BOCS: draw a sparse quadratic model from its posterior, and minimise the draw by simulated annealing.

This is the method BOCS-SA of Baptista and Poloczek (2018), for deployments. The model is that of `sparbl`,

    f(x) = α_0 + Σ_j α_j x_j + Σ_i<j α_ij x_i x_j,

with a horseshoe prior on α; each proposal minimises one draw of α from the posterior (Thompson sampling). SparBL was
motivated by this method. Here the Gibbs chain that draws α starts anew at every proposal, whereas SparBL continues it;
and the drawn model is minimised by simulated annealing, whereas SparBL uses swaps by default.

The paper states the model of second order, the horseshoe with Makalic and Schmidt's auxiliary variables, the Thompson
draw, and annealing from a point chosen uniformly at random: a neighbour drawn uniformly is accepted if it is better,
else with probability exp(-Δ / T), while T falls. It does not state the number of sweeps, the first temperature, the
cooling, the steps and the restarts. Here the first temperature is the mean change of a swap, and cooling is geometric.

Departures from the paper. The paper minimises over {0, 1}^d, where a neighbour differs in one entry. Here a neighbour
is another allowed deployment, with one unit moved, so that the number of units and pinned and closed sites never
change. The paper's penalty λ ‖x‖₁ is then the same for all x and is left out. A deployment is not evaluated twice: if
the minimiser of a draw is known already, the chain goes on to another draw. Twins, colocation and scaling are treated
as in `sparbl`.

Limits. The limits of SparBL's quadratic model apply. A short new chain gives a less accurate draw than a continued
chain and takes more work: a proposal takes 0.3 s of CPU for 50 sites and 100 values.

References
----------
Baptista, R. and Poloczek, M. (2018). Bayesian optimization of combinatorial structures. ICML, PMLR 80, 462-471.
"""

from ..._types import IntArray, Rng
from ...evaluators.objective import Objective
from .sparbl import SparBL

SWEEPS = 20  # Gibbs sweeps between two draws within a proposal; before its first draw, ten times as many


class BOCS(SparBL):
    """Bayesian optimization of combinatorial structures, by simulated annealing (BOCS-SA).

    Parameters
    ----------
    objective : Objective
    rng : int or Generator, optional

    Attributes
    ----------
    state : Horseshoe or None
        Gibbs chain of the last proposal; None before the first model.

    Examples
    --------
    >>> import emsopt as eo
    >>> objective = eo.Objective(eo.datasets.grid_city(n_sites=6, units=2, rng=1), 2)
    >>> optimizer = eo.optimizers.BOCS(objective, rng=0)
    >>> sites = optimizer.ask()
    >>> optimizer.tell(sites, objective(sites))
    >>> len(sites), objective.evaluations
    (2, 1)
    """

    def __init__(self, objective: Objective, *, rng: Rng = None) -> None:
        super().__init__(objective, sweeps=SWEEPS, method="annealing", rng=rng)

    def _propose(self) -> IntArray:
        self.state = None
        return super()._propose()
