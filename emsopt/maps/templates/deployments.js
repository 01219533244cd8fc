const {city, key, edit, views: firstViews} = data;
let views = firstViews, shown = 0;

const escaped = text => make("p", "", text).innerHTML;
const number = (value, digits, unit) => value === null ? "no data" : value.toFixed(digits).replace("-", "−") + (unit === "%" ? unit : unit ? " " + unit : "");

// -- the map -----------------------------------------------------------------------------------------------------
const bounds = L.latLngBounds(city.bounds);
const roomy = () => document.getElementById("map").clientWidth > 620;
const map = openMap({plane: city.plane, bounds, preferCanvas: city.atoms.name.length > 1500, attributionControl: city.tiles,
  margins: () => ({paddingTopLeft: [roomy() ? 50 : 14, 14], paddingBottomRight: [roomy() ? 225 : 14, 14]})});
if (city.tiles) {
  map.attributionControl.setPrefix(false);
  L.tileLayer("%TILES%", {maxZoom: 19, attribution: "&copy; OpenStreetMap contributors",
    referrerPolicy: "strict-origin-when-cross-origin"}).addTo(map);
}
map.createPane("lines").style.zIndex = 450;
map.getPane("lines").style.pointerEvents = "none";
map.createPane("calls").style.zIndex = 440;
map.getPane("calls").style.pointerEvents = "none";

// -- layers: every view fills the same groups ------------------------------------------------------------------------
const shading = L.featureGroup(), lines = L.layerGroup(), calls = L.layerGroup();
const stations = L.layerGroup(), vacant = L.layerGroup();
const bases = views.map(() => L.layerGroup());
const overlays = {Shading: shading};
if (views.some(view => view.lines.length)) overlays["Who answers"] = lines;
if (views.some(view => view.units.length)) overlays["Stations with units"] = stations;
overlays["Vacant sites"] = vacant;
if (city.atoms.shape) overlays["Calls (area of circle)"] = calls;  // hidden at first
const switches = views.length > 1 ? views.map((view, k) => [escaped(view.name), bases[k]]) : [];
L.control.layers(Object.fromEntries(switches), overlays, {collapsed: !roomy()}).addTo(map);
for (const group of [bases[0], shading, lines, stations, vacant]) group.addTo(map);
map.on("baselayerchange", event => { shown = bases.indexOf(event.layer); draw(); });

let atomLayers = [], lineLayers = [];
const opacity = city.tiles ? 0.6 : 1;
const most = Math.max(...city.atoms.share);
const radius = j => Math.max(2.5, city.largest * Math.sqrt(city.atoms.share[j] / most));
const shade = value => {
  const {edges, colours, missing} = views[shown].classes;
  if (value === null) return missing;
  let k = 0;
  while (k < colours.length - 1 && value >= edges[k + 1]) k++;
  return colours[k];
};
const isExtra = column => column.label !== "Share of calls";  // popups and tables always show the share
const answers = j => views[shown].lines.filter(line => line[1] === j).sort((a, b) => b[2] - a[2]);
const tip = content => [content, {sticky: true, direction: "top", opacity: 1}];

function emphasise(chosen) {
  for (const [layer, line] of lineLayers)
    layer.setStyle({opacity: !chosen ? lineOpacity(line) : chosen(line) ? 0.95 : 0.04});
}
const lineOpacity = line => city.thinness * (0.35 + 0.5 * line[2]);
const width = share => city.thinness * (0.5 + 3.5 * share);

function atomTip(j) {
  const column = views[shown].columns[0];
  return make("span", "", city.atoms.name[j] + ": " + number(column.values[j], column.digits, column.unit));
}
function atomPopup(j) {
  const view = views[shown], node = make("div", "", make("strong", "", city.atoms.name[j]));
  const facts = [["Share of calls", number(100 * city.atoms.share[j], 1, "%")]];
  for (const c of view.columns.filter(isExtra)) facts.push([c.label, number(c.values[j], c.digits, c.unit)]);
  node.append(make("table", "", make("tbody", "", ...facts.map(f => make("tr", "", ...f.map(t => make("td", "", t)))))));
  const found = answers(j);
  if (found.length) {
    const rest = 1 - found.reduce((sum, line) => sum + line[2], 0);
    const rows = found.map(line => [city.places[line[0]].name, number(100 * line[2], 0, "%")]);
    if (rest > 0.005) rows.push(["others", number(100 * rest, 0, "%")]);
    node.append(table("", ["Answered from", "of its calls"], rows));
  }
  return node;
}
function stationPopup(place, entry) {
  const node = make("div", "", make("strong", "", place.name));
  node.append(entry ? table("", unitHead(views[shown]), entry.rows) : make("div", "", "No unit waits here."));
  return node;
}
function marker(place, entry) {
  const icon = make("div", "station " + (entry ? entry.tone : "vacant"), entry ? entry.text : "");
  const size = entry ? 20 : 11;
  const label = place.name + ": " + (entry ? entry.label : "no unit");
  const layer = L.marker(place.at, {icon: L.divIcon({html: icon, className: "", iconSize: [size, size]}), alt: label,
    zIndexOffset: entry ? 1000 : 0});
  layer.on("add", () => {
    layer.getElement().setAttribute("aria-label", label);
    layer.getElement().dataset.place = own;
  });
  layer.bindTooltip(...tip(make("span", "", label)));
  if (editable()) layer.on("click", press).on("keypress", event => {
    if (event.originalEvent.key === "Enter") press();
  });
  else layer.bindPopup(() => stationPopup(place, entry));
  layer.on("popupopen", () => layer.closeTooltip());
  const own = city.places.indexOf(place);
  function press() {  // press this place's button in the surrounding page, if there is one
    try { window.parent.document.querySelector(".emsopt-" + key + "-place-" + own)?.click(); } catch { /* the surrounding page is of another origin */ }
  }
  layer.on("mouseover focus", () => entry && emphasise(line => line[0] === own)).on("mouseout blur", () => emphasise());
  return layer;
}

const editable = () => edit !== null && views[shown].name === edit;

function draw() {
  const view = views[shown], column = view.columns[0], held = document.activeElement?.dataset.place;
  for (const group of [shading, lines, calls, stations, vacant]) group.clearLayers();
  document.getElementById("summary").textContent = view.summary;
  document.getElementById("hint").textContent = view.hint + (editable() ? " Click on a station to add or remove a unit." : "");
  atomLayers = city.atoms.name.map((name, j) => {
    const style = {fillColor: shade(column.values[j]), fillOpacity: opacity, weight: 1, opacity: 1,
      color: city.atoms.shape ? "#fff" : "#555"};
    const layer = city.atoms.shape ? L.geoJSON(city.atoms.shape[j], {style})
      : L.circleMarker(city.atoms.at[j], {...style, radius: radius(j)});
    layer.bindTooltip(...tip(() => atomTip(j))).bindPopup(() => atomPopup(j));
    layer.on("mouseover", () => {
      layer.setStyle({color: "#000", weight: 2}).bringToFront();
      emphasise(line => line[1] === j);
    });
    layer.on("mouseout", () => { layer.setStyle(style); emphasise(); });
    if (city.atoms.shape)
      calls.addLayer(L.circleMarker(city.atoms.at[j], {pane: "calls", radius: radius(j), interactive: false,
        fillColor: "#333", fillOpacity: 0.55, color: "#fff", weight: 1}));
    return layer.addTo(shading);
  });
  lineLayers = view.lines.map(line => {
    const path = L.polyline([city.places[line[0]].at, city.atoms.at[line[1]]], {pane: "lines", interactive: false,
      color: "%LINES%", weight: width(line[2]), opacity: lineOpacity(line)});
    lines.addLayer(path);
    return [path, line];
  });
  const entries = new Map(view.units.map(entry => [entry.at, entry]));
  city.places.forEach((place, k) => (entries.has(k) ? stations : vacant).addLayer(marker(place, entries.get(k))));
  if (held !== undefined)  // the markers are new, so give the focus back to a user of the keyboard
    document.querySelector(`[data-place="${held}"]`)?.focus({preventScroll: true});
  fillLegend(view);
  if (details.open) fillTables();
}

// -- legend and table ---------------------------------------------------------------------------------------------
const legend = addLegend(map);
const unitHead = view => view.compared ? ["Units at", ...view.compared] : ["Unit at", "busy", "of answered calls"];
function symbols({compared, units}) {
  if (compared) return [["", "1", "same in both"], ["gain", "+1", "more in " + compared[0]],
    ["loss", "−1", "more in " + compared[1]], ["vacant", "", "vacant in both"]];
  if (units.length) return [["", "1", "station, number of units"], ["vacant", "", "vacant site"]];
  return [["vacant", "", "candidate site"]];
}
function fillLegend(view) {
  const {edges, colours, below, above} = view.classes, {label, unit} = view.columns[0];
  const last = colours.length - 1, ramp = make("div", "ramp"), ticks = make("div", "ticks");
  colours.forEach((colour, k) => {
    const swatch = make("i", k === 0 && below ? "below" : k === last && above ? "above" : "");
    swatch.style.background = colour;
    ramp.append(swatch);
  });
  edges.forEach((edge, k) => {  // an open end has no limit
    const open = k === 0 ? below : k === last + 1 && above;
    ticks.append(make("span", "", open ? "" : String(Number(edge.toPrecision(6))).replace("-", "−")));
  });
  const rows = symbols(view).map(([tone, text, meaning]) =>
    make("div", "row", make("i", "", make("span", "station " + tone, text)), meaning));
  if (view.lines.length) {
    const rules = [0.1, 0.5, 1].flatMap(share => {
      const rule = make("span", "rule");
      rule.style.height = width(share) + "px";
      return [rule, 100 * share + "%"];
    });
    rows.push(make("div", "row", "lines: share of an atom’s calls"), make("div", "row", ...rules));
  }
  const title = make("b", "", label + ", " + unit);
  legend.replaceChildren(title, ramp, ticks, ...rows);
}

function fillTables() {
  const view = views[shown], box = document.getElementById("tables");
  const rows = view.units.flatMap(entry => entry.rows), served = view.lines.length > 0;
  const columns = view.columns.filter(isExtra);
  const jump = j => {
    const button = make("button", "", city.atoms.name[j]);
    button.type = "button";
    button.onclick = () => {
      details.open = false;
      map.openPopup(atomPopup(j), city.atoms.at[j]);
    };
    return button;
  };
  const main = j => answers(j).slice(0, 3).map(a => city.places[a[0]].name + " " + number(100 * a[2], 0, "%")).join(", ");
  box.replaceChildren(
    ...(rows.length ? [table(view.name, unitHead(view), rows)] : []),
    table("Atoms", ["Atom", "Share of calls, %", ...view.columns.map(c => c.label + ", " + c.unit), "Answered from"],
      city.atoms.name.map((name, j) => [jump(j), number(100 * city.atoms.share[j], 2),
        ...view.columns.map(c => number(c.values[j], c.digits)), main(j)])));
}
draw();

// -- new results for a map that is already on the page ---------------------------------------------------------------
let drawn = null;
if (key) addEventListener("message", event => {
  if (!event.data || event.data.emsoptMap !== key) return;
  if (event.data.id !== drawn) {  // the sender repeats the message until it is answered
    drawn = event.data.id;
    views = event.data.views;
    draw();
  }
  event.source.postMessage({emsoptDrawn: event.data.id}, "*");
});
