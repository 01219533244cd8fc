// What all maps share. Each kind of map is a function of (root, scene, views, port) that fills the element `root`:
// `scene` is what stays, `views` are the results, and `port` leads to a notebook's kernel, if there is one.

// Text enters the page only as text nodes, so that no name can become markup.
const make = (tag, className, ...children) => {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children);
  return element;
};
const table = (caption, head, rows) => {
  const cells = (tag, row) => make("tr", "", ...row.map(cell => make(tag, "", cell)));
  return make("table", "", ...(caption ? [make("caption", "", caption)] : []), make("thead", "", cells("th", head)),
    make("tbody", "", ...rows.map(row => cells("td", row))));
};

/** Fill `root` with a head, an empty box for the map, and a foot with a table that `fill` makes when it is opened. */
function lay(root, {title, notes}, {page}, controls, fill) {
  const summary = make("p", "summary"), hint = make("span"), tables = make("div", "tables");
  const head = make("div", "head", ...(page ? [make("h1", "", title)] : []), summary, ...controls);
  const details = make("details", "", make("summary", "", "Table"), tables), box = make("div");
  summary.setAttribute("role", "status");
  box.setAttribute("role", "application");
  box.setAttribute("aria-label", `Map: ${title}. The table below has the same information as text.`);
  tables.tabIndex = 0;
  tables.setAttribute("role", "region");
  tables.setAttribute("aria-label", "Table");
  root.replaceChildren(head, box, make("div", "foot", details, make("p", "", notes, hint)));
  root.dataset.lmSuppressShortcuts = true;  // in JupyterLab, Enter would otherwise edit the cell
  const refill = () => details.open && tables.replaceChildren(...fill());
  details.addEventListener("toggle", refill);
  root.addEventListener("keydown", event => {
    if (event.key === "Escape") details.open = false;
  });
  return {summary, hint, box, details, refill};
}

/** Open a map in `box` that shows `bounds`, or what the reader saw of them before (`port.look`); call `fit` once it is filled. */
function openMap(box, port, {plane, bounds, preferCanvas = true, resized = () => ({})}) {
  const map = L.map(box, {
    crs: plane ? L.CRS.Simple : L.CRS.EPSG3857, zoomSnap: 0.25, zoomDelta: 0.5, wheelPxPerZoomLevel: 90,
    minZoom: plane ? -14 : 2, maxZoom: plane ? 4 : 19, preferCanvas, attributionControl: false, scrollWheelZoom: false,
    trackResize: false,  // `fit` follows the box; Leaflet would still follow the window after the map was removed
  });
  // Scrolling past the map should not zoom it.
  map.on("focus", () => map.scrollWheelZoom.enable()).on("blur", () => map.scrollWheelZoom.disable());
  L.control.scale({imperial: false}).addTo(map);
  // Leaflet focuses the map when the mouse button goes down. If the surrounding page then scrolled the map into view, the
  // pointer would be over something else when the button goes up, and the click would be lost.
  box.focus = () => HTMLElement.prototype.focus.call(box, {preventScroll: true});
  const all = bounds.toBBoxString(), seen = port.look?.all === all;
  let fitted = seen ? port.look.size : null, held = seen && port.look.held, wide = box.clientWidth;
  map.fit = () => {
    if (!box.clientWidth) return;
    map.invalidateSize({pan: box.clientWidth !== wide});  // a change of the footer's height should not move the map
    wide = box.clientWidth;
    const margins = resized();
    const size = [box.clientWidth, box.clientHeight];
    if (held || fitted && size.every((length, k) => Math.abs(length - fitted[k]) < 0.1 * fitted[k])) return;
    fitted = size;
    map.fitBounds(bounds, {animate: false, ...margins});
  };
  // The map fits its box, also when that gets wider, until the reader moves or zooms it.
  for (const event of ["pointerdown", "wheel", "keydown"]) box.addEventListener(event, () => { held = true; }, true);
  const observer = new ResizeObserver(map.fit);  // a map created in a hidden tab gets its size later
  map.setMaxBounds(bounds.pad(1));
  map.setView(...(seen ? port.look.at : [bounds.getCenter(), plane ? -2 : 11]), {animate: false});
  map.on("moveend", () => { if (fitted) port.look = {all, at: [map.getCenter(), map.getZoom()], size: fitted, held}; });
  observer.observe(box);
  map.on("unload", () => observer.disconnect());
  box.parentElement.map = map;
  return map;
}

function addLegend(map) {
  const legend = L.control({position: "bottomright"}), box = make("div", "legend");
  L.DomEvent.disableClickPropagation(box);
  legend.onAdd = () => box;
  legend.addTo(map);
  return box;
}

/** Make a marker work as a button: Enter and the space bar click on it. */
function asButton(marker, label) {
  marker.on("add", () => {
    const element = marker.getElement();
    element.setAttribute("aria-label", label);
    element.addEventListener("keydown", event => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      element.click();
    });
  });
  return marker;
}

/** Draw markers anew without taking the focus from a user of the keyboard. */
function keepFocus(root, redraw) {
  const held = root.contains(document.activeElement) ? document.activeElement.dataset.place : undefined;
  redraw();
  if (held !== undefined) root.querySelector(`[data-place="${held}"]`)?.focus({preventScroll: true});
}

/** Return the points of a course: its first point and the steps to each next one, in units of 1 / scale. */
function course(steps, scale) {
  const points = [];
  let north = 0, east = 0;
  for (let k = 0; k < steps.length; k += 2) {
    north += steps[k];
    east += steps[k + 1];
    points.push([north / scale, east / scale]);
  }
  return points;
}
