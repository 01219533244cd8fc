"""Checkboxes that say where the units of one's own deployment wait."""

import ipywidgets as widgets

from ..errors import InputError


class SiteBoxes:
    """A checkbox for each site, in a grid.

    Parameters
    ----------
    city : City
    changed : callable
        Called without arguments after a change, once however many boxes changed.

    Attributes
    ----------
    boxes : list of Checkbox
    grid : GridBox
    """

    def __init__(self, city, changed):
        self.boxes = [
            widgets.Checkbox(
                value=False,
                description=name,
                indent=False,
                tooltip=f"A unit at {name}",
                layout={"width": "auto"},
            )
            for name in city.site_names
        ]
        layout = {"grid_template_columns": "repeat(auto-fill, minmax(13em, 1fr))", "overflow": "auto"}
        self.grid = widgets.GridBox(self.boxes, layout=layout | {"max_height": "14em"})
        self._changed, self._quiet = changed, False
        for box in self.boxes:
            box.observe(self._tell, "value")

    def _tell(self, _=None):
        if not self._quiet:
            self._changed()

    @property
    def chosen(self):
        """The sites that are ticked, a tuple of indices; at least one.

        Raises
        ------
        InputError
            If none is.
        """
        ticked = tuple(site for site, box in enumerate(self.boxes) if box.value)
        if not ticked:
            raise InputError("no site is ticked: tick at least one.")
        return ticked

    def take(self, sites):
        """Tick these sites and no others."""
        sites = {int(site) for site in sites}
        self._quiet = True
        try:
            for site, box in enumerate(self.boxes):
                box.value = site in sites
        finally:
            self._quiet = False
        self._changed()

    def press(self, places):
        """Put one more unit at a place, which several sites may stand for, or take all away if it is full.

        The last unit stays: there would be no deployment to show.
        """
        chosen = {site for site, box in enumerate(self.boxes) if box.value}
        free = [site for site in places if site not in chosen]
        chosen = chosen | {free[0]} if free else chosen - set(places)
        if chosen:
            self.take(chosen)
