"""Road networks: those of "Bayesian Analysis of Combinatorial Gaussian Process Bandits", Auckland, and routes."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from .._files import locate
from .._validate import choice

if TYPE_CHECKING:
    from ..roads import RoadNetwork

SOURCE = "https://raw.githubusercontent.com/lcodeca/"
LUST = f"{SOURCE}LuSTScenario/5edb7ecb9ad196c39172b6eb95d19ed789f4b1a6/scenario/lust.net.xml"
MOST = f"{SOURCE}MoSTScenario/b29b2f65f1096a9c69a601ec62a724815cb4a43f/scenario/in/most.net.xml"
PUBLISHED = {  # file, rebuild of it, address and git blob
    "luxembourg": ("luxembourg/lust.net.xml", "luxembourg", LUST, "c507ce16eb340bede88ac0c8e74c19519e09409f"),
    "monaco, published": ("monaco_elevation/most.net.xml", "monaco", MOST, "6ffae75cfe63992c04a6395fbbe86cc39166140c"),
}

ROUTES = {
    "monaco": {"A": ("125974224#0", "157294578#3"), "B": ("214636589#0", "-196017194#1")},
    "luxembourg": {"A": ("-31118#2", "--32646#1"), "B": ("-30436#5", "-30946#0")},
    "auckland": {"A": ("road 2918", "road 776"), "B": ("road 891", "road 776")},
    "luxembourg, rebuilt": {"A": ("-31118#1", "--32646#1"), "B": ("-30436#1", "-30946")},
    "monaco, rebuilt": {"A": ("-271#4", "-2114"), "B": ("-1648#1", "3699#1")},
}
"""First and last edge of two routes per network, by ``net.name``; "monaco, published" has none.

Luxembourg: the edges of the paper, appendix B.2; in the rebuilt network, other pieces of the same streets. Monaco: the
paper's four ids do not exist there, so these are routes of similar extent: A from Cap-d'Ail along the coast to
Roquebrune, B from the port of Monaco up to La Turbie. Auckland: from the stations St John Western (A) and North Shore
(B) to Middlemore Hospital.

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
    name : {"monaco", "luxembourg", "monaco, published", "auckland"}
        "monaco" is embedded: OpenStreetMap of March 2016, with turn restrictions, default speeds by road class, and a
        **terrain that is a surrogate** (`RoadNetwork.notes`). It covers the same place as the network of that paper,
        "monaco, published" (MoST scenario), whose heights come from an elevation model. "luxembourg" is the published
        network of the LuST scenario. It is flat, whereas that paper added elevations; no edge therefore recovers
        energy. Published networks are not part of this package: ``lust.net.xml`` and ``most.net.xml`` are searched in
        ``$EMSOPT_DATA`` and its folders ``luxembourg`` and ``monaco_elevation``. If only a rebuild from the same map is
        found there (``luxembourg_rebuilt.net.xml.gz``, ``monaco_rebuilt.net.xml.gz``), it is read instead, and ``name``
        and ``notes`` say so. Otherwise the published network is downloaded and its checksum verified. "auckland" is
        embedded: the main roads of the city of `load_auckland`, flat, with the speeds of that case, and few curves.

    Returns
    -------
    RoadNetwork
        The largest strongly connected part of the network. `ROUTES` lists routes by ``net.name``.

    Raises
    ------
    DataUnavailableError
        If a published network is not found and cannot be downloaded.

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

    if choice(name, "name", ("monaco", "luxembourg", "monaco, published", "auckland")) not in PUBLISHED:
        return RoadNetwork.load(locate.package_file(name, "roads.json.gz"))
    published, place, url, git_blob = PUBLISHED[name]
    rebuilt = locate.find_local(published.replace(Path(published).name, f"{place}_rebuilt.net.xml.gz"))
    if rebuilt is not None and locate.find_local(published) is None:
        net = RoadNetwork.from_sumo(rebuilt, name=f"{place}, rebuilt")
        note = "Not the published network, but a rebuild from its OpenStreetMap source."
        return replace(net, notes=f"{note} {net.notes}")
    return RoadNetwork.from_sumo(locate.find_data(published, url, git_blob=git_blob), name=name)
