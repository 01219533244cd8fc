"""Rules by which a fleet is operated: which unit is sent to a call, and where free units wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..city import City
from ..errors import InputError, _validate
from ..errors._types import ArrayLike, FloatArray, IntArray

DISPATCH_RULES = ("closest", "preference", "coverage")
RELOCATION_RULES = ("none", "table", "coverage")


@dataclass(frozen=True, eq=False)
class Policy:
    """Rules of dispatch and relocation; raise if one is out of range, or they contradict each other.

    Parameters
    ----------
    dispatch : {"closest", "preference", "coverage"}
        Which free unit is sent: the one that is expected at the scene first; that of the station which the atom prefers
        (`City.preference`); or, of the units expected within the call's target time, the one whose absence lowers the
        expected coverage least (Jagtenberg et al. 2017), and the first at the scene if there is none (ours).
    offsets : array_like, shape (N,), optional
        Added to the minutes (or the preference) of the units of each station before they are compared. A positive
        offset spares a station.
    on_the_way : bool
        Whether a unit on its way home from a call may be sent from where it is; otherwise it is not free until it
        arrives. A unit that moves to another site is free in either case.
    table : sequence of sequence of int, optional
        A compliance table: entry k - 1 lists the k sites where k free units wait. When the number of free units
        changes, units move to sites of its entry that lack one, the nearest first.
    moves : int
        Most units that move at a time by the table, besides one that became free.
    coverage : float, optional
        Relocation by expected coverage (DMEXCLP): a unit that becomes free goes to the site where it adds most to the
        calls expected to be reached by a free unit within this many minutes of driving.
    busy : float
        The busy fraction q assumed by that rule, in [0, 1).
    patience : float, optional
        Minutes. The coverage that a site adds is multiplied by exp(-drive / patience), as a unit may be sent before it
        is there (ours). Default: no discount.
    relocate : bool
        Whether free units move by ``coverage``; with False it is for dispatch only.
    instant : bool
        Whether free units reach their sites at once, as a bound for what a table can gain.

    References
    ----------
    Jagtenberg, C. J., Bhulai, S. and van der Mei, R. D. (2015). An efficient heuristic for real-time ambulance
        redeployment. Operations Research for Health Care 4, 27-35. (DMEXCLP.)
    Jagtenberg, C. J., Bhulai, S. and van der Mei, R. D. (2017). Dynamic ambulance dispatching: is the closest-idle
        policy always optimal? Health Care Management Science 20, 517-531. (Dispatch by coverage.)
    Gendreau, M., Laporte, G. and Semet, F. (2006). The maximal expected coverage relocation problem for emergency
        vehicles. Journal of the Operational Research Society 57, 22-28. (Compliance tables.)

    Examples
    --------
    >>> Policy().relocation, Policy(coverage=7.0, busy=0.4).relocation
    ('none', 'coverage')
    """

    dispatch: str = "closest"
    offsets: ArrayLike | None = None
    on_the_way: bool = True
    table: Sequence[Sequence[int]] | None = None
    moves: int = 1
    coverage: float | None = None
    busy: float = 0.3
    patience: float | None = None
    relocate: bool = True
    instant: bool = False

    def __post_init__(self) -> None:
        checked = vars(self)  # a frozen dataclass takes no assignments
        _validate.choice(self.dispatch, "dispatch", DISPATCH_RULES)
        for name in ("on_the_way", "relocate", "instant"):
            _validate.as_bool(getattr(self, name), name)
        checked["moves"] = _validate.whole_number(self.moves, "moves", 0)
        if self.offsets is not None:
            checked["offsets"] = _validate.real_array(self.offsets, "offsets", (None,))
        for name in ("coverage", "patience"):
            if checked[name] is not None:
                checked[name] = _validate.positive_number(checked[name], name, "min")
        if not _validate.is_real(self.busy) or not 0 <= self.busy < 1:
            raise InputError(f"`busy` must be at least 0 and below 1; got {self.busy!r}.")
        if self.table is not None:
            checked["table"] = _validate_table(self.table)
        self._check_rules()

    def _check_rules(self) -> None:
        """Raise if the rules contradict each other, or an option that one needs is missing."""
        if self.table is None and self.instant:
            raise InputError("`instant` needs `table`, which says where free units are.")
        # with relocate=False `coverage` serves dispatch alone
        if self.table is not None and self.coverage is not None and self.relocate:
            raise InputError("`table` and `coverage` are two rules of relocation; give one of them.")
        if self.coverage is None and self.dispatch == "coverage":
            raise InputError("dispatch by coverage needs `coverage`, minutes of driving; got None.")

    @property
    def relocation(self) -> str:
        """Rule that moves free units: "none", "table" or "coverage"."""
        if self.table is not None:
            return "table"
        return "none" if self.coverage is None or not self.relocate else "coverage"

    def offsets_and_table(self, city: City, units: int) -> tuple[FloatArray, IntArray]:
        """Return offsets, (N,), and the table, (p, p), padded with -1; raise if they do not fit the city and fleet."""
        n = city.n_sites
        offsets = np.zeros(n) if self.offsets is None else np.asarray(self.offsets, dtype=float)
        if len(offsets) != n:
            raise InputError(f"`offsets` must have {n} entries, one per site; got {len(offsets)}.")
        table = np.full((units, units), -1)  # of row k - 1 only k entries are read
        if self.table is not None:
            if len(self.table) != units:
                wanted = f"{units} entries, one for each number of free units"
                raise InputError(f"`table` must have {wanted}; it has {len(self.table)}.")
            for k, sites in enumerate(self.table):
                if not all(0 <= site < n for site in sites):
                    raise InputError(f"entry {k} of `table` must hold sites from 0 to {n - 1}; got {sites}.")
                table[k, : k + 1] = sites
        return offsets, table


def _validate_table(table: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """Return a compliance table as tuples of sites; raise unless entry k - 1 lists k sites."""
    if not np.iterable(table) or isinstance(table, str) or not all(map(np.iterable, table)):
        raise InputError(f"`table` must hold one sequence of sites per entry; got {table!r}.")
    checked = tuple(tuple(_validate.whole_number(s, "a site of `table`", 0) for s in sites) for sites in table)
    sizes = [len(sites) for sites in checked]
    if not sizes or sizes != list(range(1, len(sizes) + 1)):
        raise InputError(f"entry k - 1 of `table` must list k sites; the entries have {sizes} sites.")
    return checked
