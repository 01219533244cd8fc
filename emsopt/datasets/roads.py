"""Road networks: those of "Bayesian Analysis of Combinatorial Gaussian Process Bandits", Auckland, and routes."""

from dataclasses import replace
from typing import TYPE_CHECKING

from .._files import locate
from .._validate import choice

if TYPE_CHECKING:
    from ..roads import RoadNetwork

LUST = "lcodeca/LuSTScenario/5edb7ecb9ad196c39172b6eb95d19ed789f4b1a6"
LUXEMBOURG_URL = f"https://raw.githubusercontent.com/{LUST}/scenario/lust.net.xml"
LUXEMBOURG_GIT_BLOB = "c507ce16eb340bede88ac0c8e74c19519e09409f"

ROUTES = {
    "monaco": {"A": ("125974224#0", "157294578#3"), "B": ("214636589#0", "-196017194#1")},
    "luxembourg": {"A": ("-31118#2", "--32646#1"), "B": ("-30436#5", "-30946#0")},
    "auckland": {"A": ("road 2918", "road 776"), "B": ("road 891", "road 776")},
    "luxembourg, rebuilt": {"A": ("-31118#1", "--32646#1"), "B": ("-30436#1", "-30946")},
}
"""First and last edge of two routes per network. Luxembourg: the edges of the paper, appendix B.2; in the rebuilt
network, other pieces of the same streets. Monaco: the paper's four ids do not exist there, so these are routes of
similar extent: A from Cap-d'Ail along the coast to Roquebrune, B from the port of Monaco up to La Turbie. Auckland:
from the stations St John Western (A) and North Shore (B) to Middlemore Hospital.

>>> import emsopt as eo
>>> net = eo.datasets.load_roads("monaco")
>>> start, end = eo.datasets.ROUTES["monaco"]["A"]
>>> len(net.shortest_path(net.lengths, start, end)) > 10
True
"""


def load_roads(name: str = "monaco") -> "RoadNetwork":
    """Return a road network: one of "Bayesian Analysis of Combinatorial Gaussian Process Bandits", or Auckland's.

    Parameters
    ----------
    name : {"monaco", "luxembourg", "auckland"}
        "monaco" is embedded: OpenStreetMap of March 2016, with turn restrictions, default speeds by road class, and a
        **terrain that is a surrogate** (`RoadNetwork.notes`). It covers the same place as the network of that paper,
        which is not part of this package. "luxembourg" is the published network of the LuST scenario. It is flat,
        whereas that paper added elevations; no edge therefore recovers energy. ``lust.net.xml`` is searched in
        ``$EMSOPT_DATA`` and ``$EMSOPT_DATA/luxembourg``. If only ``luxembourg_rebuilt.net.xml.gz`` is found, a rebuild
        from the same map, it is read instead, and ``notes`` says so. Otherwise the published network is downloaded and
        its checksum verified. "auckland" is embedded: the main roads of the city of `load_auckland`, flat, with the
        speeds of that case, and few curves.

    Returns
    -------
    RoadNetwork
        The largest strongly connected part of the network. `ROUTES` lists routes by ``net.name``.

    Raises
    ------
    DataUnavailableError
        If the Luxembourg network is not found and cannot be downloaded.

    Examples
    --------
    >>> net = load_roads("monaco")
    >>> net
    <RoadNetwork 'monaco': 3003 edges, 4654 connections, 473 km>
    >>> path = net.shortest_path(net.lengths, *ROUTES["monaco"]["B"])
    >>> len(path), round(float(net.lengths[path].sum()) / 1000, 1)
    (53, 8.0)
    """
    from ..roads import RoadNetwork

    if choice(name, "name", ("monaco", "luxembourg", "auckland")) != "luxembourg":
        return RoadNetwork.load(locate.package_file(name, "roads.json.gz"))
    published = "luxembourg/lust.net.xml"
    rebuilt = locate.find_local("luxembourg/luxembourg_rebuilt.net.xml.gz")
    if rebuilt is not None and locate.find_local(published) is None:
        net = RoadNetwork.from_sumo(rebuilt, name="luxembourg, rebuilt")
        note = "Not the published LuST network, but a rebuild from its OpenStreetMap source."
        return replace(net, notes=f"{note} {net.notes}")
    path = locate.find_data(published, LUXEMBOURG_URL, git_blob=LUXEMBOURG_GIT_BLOB)
    return RoadNetwork.from_sumo(path, name="luxembourg")
