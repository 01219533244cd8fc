/** A map of deployments. Every view is a deployment, or the difference of two. */
function deployments(root, scene, views, port) {
  const {city, streets} = scene, {places, atoms} = city;
  const {summary, hint, box, details, refill} = lay(root, scene, port, [], tables);
  const number = (value, digits, unit) =>
    value === null ? "no data" : value.toFixed(digits).replace("-", "−") + (unit === "%" ? unit : unit ? " " + unit : "");
  const chosen = () => Math.max(0, views.findIndex(view => view.name === port.shown));
  let shown = chosen();
  const editable = () => Boolean(port.edit) && views[shown].name === port.edit;

  // -- the map ---------------------------------------------------------------------------------------------------
  const canvas = atoms.name.length > 1500;  // slower to point at than SVG, but faster to draw
  const map = openMap(box, port, {plane: city.plane, bounds: L.latLngBounds(city.bounds), preferCanvas: canvas,
    resized: arrange});
  ["streets", "calls", "lines", "names"].forEach((name, k) => {
    Object.assign(map.createPane(name).style, {zIndex: 430 + 10 * k, pointerEvents: "none"});
  });
  const legend = addLegend(map);

  // -- layers: every view fills the same groups --------------------------------------------------------------------
  const shading = L.featureGroup(), lines = L.layerGroup(), stations = L.layerGroup(), vacant = L.layerGroup();
  const calls = L.layerGroup(), roads = L.layerGroup(), names = L.layerGroup().addTo(map);
  if (streets)
    L.polyline(streets.courses.map(steps => course(steps, streets.scale)), {pane: "streets", interactive: false,
      renderer: L.canvas({pane: "streets"}), color: "#222", weight: 0.8, opacity: 0.45}).addTo(roads);
  const ONLINE = "Street map (asks openstreetmap.org)";  // only if the reader switches it on; a saved page cannot
  const tiles = port.tiles && !city.plane ? L.tileLayer(port.tiles, {maxZoom: 19, referrerPolicy: "origin"}) : null;
  let told = "", answered = false;
  function tell(text) {
    told = text;
    map.getPane("overlayPane").style.opacity = text && 0.6;
    sayHint();
  }
  tiles?.on("add", () => tell(" Street map © OpenStreetMap contributors: their server learns this computer’s network address, its "
    + "browser, the address of this page’s server and which area is shown.")).on("remove", () => tell("")).on("tileload", () => { answered = true; })
    .on("tileerror", () => answered || tell(" The street map does not answer. Is this computer online?"));
  const layers = {Shading: shading, Streets: roads, ...(tiles && {[ONLINE]: tiles}), "Who answers": lines,
    "Stations with units": stations, "Vacant sites": vacant, "Calls (area of circle)": calls};
  const filled = name => name === "Streets" ? streets : name.startsWith("Calls") ? atoms.shape
    : name === "Who answers" ? views.some(view => view.lines.length)
    : name !== "Stations with units" || views.some(view => view.units.length);
  port.layers ??= {"Calls (area of circle)": false, [ONLINE]: false};  // what the reader has switched on or off
  for (const [name, group] of Object.entries(layers)) if (port.layers[name] !== false) group.addTo(map);
  map.on("overlayadd overlayremove", event => { port.layers[event.name] = event.type === "overlayadd"; });

  let bases = [], listed = "", switches = null;
  /** Place the list of layers above the legend, closed if there is no room for both. */
  function arrange() {
    const names = views.length > 1 ? views.map(view => view.name) : [];
    const overlays = Object.entries(layers).filter(([name]) => filled(name));
    const roomy = box.clientWidth > 620;
    root.classList.toggle("small", !roomy);
    const collapsed = !roomy || box.clientHeight < legend.offsetHeight + 20 * (names.length + overlays.length) + 60;
    const list = JSON.stringify([names, overlays.map(([name]) => name), collapsed]);
    if (list !== listed) {
      listed = list;
      switches?.remove();
      bases.forEach(base => base.remove());
      bases = views.map(() => L.layerGroup());
      const escaped = text => make("p", "", text).innerHTML;
      switches = L.control.layers(Object.fromEntries(names.map((name, k) => [escaped(name), bases[k]])),
        Object.fromEntries(overlays), {collapsed}).addTo(map);
    }
    if (!map.hasLayer(bases[shown])) {
      bases.forEach(base => base.remove());
      bases[shown].addTo(map);
    }
    return {paddingTopLeft: [roomy ? 50 : 14, 14], paddingBottomRight: [roomy ? 225 : 14, 14]};
  }
  map.on("baselayerchange", event => {
    const k = bases.indexOf(event.layer);
    if (k === shown) return;
    shown = k;
    if (port.choose) port.choose(views[k].name);  // a widget, which has a trait of that name
    else port.shown = views[k].name;
    draw();
  });

  // -- atoms: drawn once, shaded anew with every view ----------------------------------------------------------------
  const outline = {color: atoms.shape ? "#fff" : "#555", weight: Math.min(1, 16 / Math.sqrt(atoms.name.length))};
  const most = Math.max(...atoms.share);
  const radius = j => Math.max(2.5, city.largest * Math.sqrt(atoms.share[j] / most));
  const tip = content => [content, {sticky: true, direction: "top", opacity: 1}];
  const atomLayers = atoms.name.map((name, j) => {
    const style = {...outline, fillOpacity: 1, opacity: 1};
    const layer = atoms.shape ? L.geoJSON(atoms.shape[j], {style}) : L.circleMarker(atoms.at[j], {...style, radius: radius(j)});
    layer.bindTooltip(...tip(() => atomTip(j))).bindPopup(() => atomPopup(j));
    // Otherwise the tab key would stop at every atom; the table below the map holds their values.
    for (const part of layer.getLayers?.() ?? [layer])
      part.on("add", () => part.getElement()?.setAttribute("tabindex", "-1"));
    layer.on("mouseover", () => {
      layer.setStyle({color: "#000", weight: 2}).bringToFront();
      emphasise(line => line[1] === j);
    });
    layer.on("mouseout", () => { layer.setStyle(outline); emphasise(); });
    if (atoms.shape)
      calls.addLayer(L.circleMarker(atoms.at[j], {pane: "calls", radius: radius(j), interactive: false,
        fillColor: "#333", fillOpacity: 0.55, color: "#fff", weight: 1}));
    return layer.addTo(shading);
  });
  const shade = value => {
    const {edges, colours, missing} = views[shown].classes;
    if (value === null) return missing;
    let k = 0;
    while (k < colours.length - 1 && value >= edges[k + 1]) k++;
    return colours[k];
  };
  const isExtra = column => column.label !== "Share of calls";  // popups and tables always show the share
  const answers = j => views[shown].lines.filter(line => line[1] === j).sort((a, b) => b[2] - a[2]);
  function atomTip(j) {
    const column = views[shown].columns[0];
    return make("span", "", atoms.name[j] + ": " + number(column.values[j], column.digits, column.unit));
  }
  function atomPopup(j) {
    const node = make("div", "", make("strong", "", atoms.name[j]));
    const facts = [["Share of calls", number(100 * atoms.share[j], 1, "%")]];
    for (const c of views[shown].columns.filter(isExtra)) facts.push([c.label, number(c.values[j], c.digits, c.unit)]);
    node.append(make("table", "", make("tbody", "", ...facts.map(f => make("tr", "", ...f.map(t => make("td", "", t)))))));
    const found = answers(j);
    if (found.length) {
      const rest = 1 - found.reduce((sum, line) => sum + line[2], 0);
      const rows = found.map(line => [places[line[0]].name, number(100 * line[2], 0, "%")]);
      if (rest > 0.005) rows.push(["others", number(100 * rest, 0, "%")]);
      node.append(table("", ["Answered from", "of its calls"], rows));
    }
    return node;
  }
  let popup = null;
  map.on("popupopen", event => { popup = event.popup; });

  // -- lines and stations --------------------------------------------------------------------------------------------
  let lineLayers = [];
  const fills = [];
  lines.on("add", drawLines);
  const lineOpacity = line => city.thinness * (0.35 + 0.5 * line[2]);
  const width = share => 0.3 + city.thinness * (0.2 + 3.5 * share);
  function emphasise(chosen) {
    for (const [layer, line] of lineLayers)
      layer.setStyle({opacity: !chosen ? lineOpacity(line) : chosen(line) ? 0.95 : 0.04});
  }
  function stationPopup(place, entry) {
    const node = make("div", "", make("strong", "", place.name));
    node.append(entry ? table("", unitHead(views[shown]), entry.rows) : make("div", "", "No unit waits here."));
    return node;
  }
  const nearest = spot => {
    const away = places.map(place => map.project(place.at).distanceTo(map.project(spot)));
    return away.indexOf(Math.min(...away));
  };
  function marker(k, entry) {
    const place = places[k], size = entry ? 20 : 11, label = place.name + ": " + (entry ? entry.label : "no unit");
    const icon = make("div", "station " + (entry ? entry.tone : "vacant"), entry ? entry.text : "");
    const layer = asButton(L.marker(place.at, {icon: L.divIcon({html: icon, className: "", iconSize: [size, size]}),
      zIndexOffset: entry ? 1000 : 0, draggable: Boolean(entry && port.move && editable())}), label);
    layer.on("add", () => { layer.getElement().dataset.place = k; });
    layer.bindTooltip(...tip(make("span", "", label))).on("popupopen", () => layer.closeTooltip());
    if (editable()) layer.on("click", () => port.press(k));
    else layer.bindPopup(() => stationPopup(place, entry));
    layer.on("dragend", () => port.move(k, nearest(layer.getLatLng())));
    layer.on("mouseover focus", () => entry && emphasise(line => line[0] === k)).on("mouseout blur", () => emphasise());
    return layer;
  }

  /** Draw the lines, of which there can be thousands, only if they are switched on. */
  function drawLines() {
    lines.clearLayers();
    lineLayers = (map.hasLayer(lines) ? views[shown].lines : []).map(line => {
      const path = L.polyline([places[line[0]].at, atoms.at[line[1]]], {pane: "lines", interactive: false,
        color: "%LINES%", weight: width(line[2]), opacity: lineOpacity(line)});
      lines.addLayer(path);
      return [path, line];
    });
  }

  /** Write what has room, of stations with units first and then of the atoms with most calls. */
  const UNNAMED = /^(atom \d+|[\d.]+[NS] [\d.]+[EW])$/;  // numbers, and cells of a grid
  const busiest = atoms.name.map((_, j) => j).filter(j => !UNNAMED.test(atoms.name[j])).sort((a, b) => atoms.share[b] - atoms.share[a]);
  function writeNames() {
    names.clearLayers();
    const held = new Set(views[shown].units.map(entry => entry.at)), seen = map.getBounds(), taken = [];
    const free = ([left, top, right, bottom]) =>
      taken.every(box => right < box[0] || left > box[2] || bottom < box[1] || top > box[3]);
    const around = (at, width, height) => {
      const {x, y} = map.latLngToContainerPoint(at);
      return [x - width / 2, y - height / 2, x + width / 2, y + height / 2];
    };
    places.forEach(({at}, k) => taken.push(around(at, held.has(k) ? 20 : 11, held.has(k) ? 20 : 11)));
    const write = ({name, at}, below, className) => {
      const box = around(at, 7 * name.length, 14);
      if (below) box[1] = (box[3] += below) - 14;
      if (!seen.contains(at) || !free(box)) return;
      taken.push(box);
      const size = [7 * name.length, 14], icon = L.divIcon({html: make("span", "", name), className, iconSize: size,
        iconAnchor: [size[0] / 2, 7 - below]});  // of known size: to measure each would lay out the page anew
      L.marker(at, {icon, pane: "names", interactive: false, keyboard: false}).addTo(names);
    };
    for (const group of [stations, vacant])
      if (map.hasLayer(group)) places.forEach((place, k) => held.has(k) === (group === stations) && write(place, 18, "name station-name"));
    if (map.hasLayer(shading)) for (const j of busiest) write({name: atoms.name[j], at: atoms.at[j]}, 0, "name");
  }
  map.on("moveend overlayadd overlayremove", writeNames);
  function sayHint() {
    hint.textContent = views[shown].hint + (!editable() ? "" :
      port.move ? " Drag a unit to another station, or tap a station." : " Click on a station to add or remove a unit.") + told;
  }
  function draw() {
    const view = views[shown];
    for (const group of [stations, vacant]) group.clearLayers();
    summary.textContent = view.summary;
    sayHint();
    view.columns[0].values.forEach((value, j) => {
      const fillColor = shade(value);
      if (fills[j] !== fillColor) atomLayers[j].setStyle({fillColor});  // slow
      fills[j] = fillColor;
    });
    drawLines();
    const entries = new Map(view.units.map(entry => [entry.at, entry]));
    places.forEach((_, k) => (entries.has(k) ? stations : vacant).addLayer(marker(k, entries.get(k))));
    writeNames();
    if (popup?.isOpen()) popup.update();
    fillLegend(view);
    refill();
  }

  // -- legend and table ------------------------------------------------------------------------------------------------
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
    legend.replaceChildren(make("b", "", label + ", " + unit), ramp, ticks, ...rows);
  }
  function tables() {
    const view = views[shown], rows = view.units.flatMap(entry => entry.rows), columns = view.columns.filter(isExtra);
    const jump = j => {
      const button = make("button", "", atoms.name[j]);
      button.type = "button";
      button.onclick = () => {
        details.open = false;
        map.openPopup(atomPopup(j), atoms.at[j]);
      };
      return button;
    };
    const main = j => answers(j).slice(0, 3).map(a => places[a[0]].name + " " + number(100 * a[2], 0, "%")).join(", ");
    const head = ["Atom", "Share of calls, %", ...columns.map(c => c.label + ", " + c.unit), "Answered from"];
    return [...(rows.length ? [table(view.name, unitHead(view), rows)] : []), table("Atoms", head,
      atoms.name.map((_, j) => [jump(j), number(100 * atoms.share[j], 2), ...columns.map(c => number(c.values[j], c.digits)), main(j)]))];
  }

  function update(next) {
    views = next;
    shown = chosen();
    keepFocus(root, draw);
    arrange();
  }
  update(views);
  map.fit();
  return {update, remove: () => map.remove()};
}
