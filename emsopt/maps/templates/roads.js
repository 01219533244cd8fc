const {net, views, classes, route, best, rounds} = data;
const [agent, round, at, play, summary] = ["agent", "round", "at", "play", "summary"].map(id => document.getElementById(id));

const course = steps => {  // a first point, and the steps from each point to the next
  const points = [];
  let north = 0, east = 0;
  for (let k = 0; k < steps.length; k += 2) {
    north += steps[k];
    east += steps[k + 1];
    points.push([north / net.scale, east / net.scale]);
  }
  return points;
};
const courses = net.courses.map(course);

// -- the map -----------------------------------------------------------------------------------------------------
const map = openMap({plane: net.plane, bounds: L.latLngBounds(courses.flat())});
L.polyline(courses, {color: "%ROADS%", weight: 1, interactive: false}).addTo(map);
if (best.length) L.polyline(best.map(edge => courses[edge]), {color: "%LINES%", weight: 9, opacity: 0.45, interactive: false}).addTo(map);
const driven = L.layerGroup().addTo(map);
for (const [text, edge, last] of route) {
  const points = courses[edge], point = points[last ? points.length - 1 : 0];
  const name = text === "A" ? "start" : "end";
  L.marker(point, {icon: L.divIcon({html: make("div", "end", text), className: "", iconSize: [20, 20]}), alt: name})
    .bindTooltip(make("span", "", name)).addTo(map);
}

let lines = [];
const classOf = visits => classes.findLastIndex(c => visits >= c.from);
function draw() {  // the least driven edges first, so that the others lie on top
  driven.clearLayers();
  const view = views[agent.selectedIndex];
  const order = view.edges.map((_, k) => k).sort((a, b) => view.visits[a] - view.visits[b]);
  lines = order.map(k => {
    const look = classes[classOf(view.visits[k])];
    const line = L.polyline(courses[view.edges[k]], {color: look.colour, weight: look.weight});
    line.bindTooltip(() => make("span", "", `${net.ids[view.edges[k]]}: ${view.visits[k]} rounds, first in round ${view.since[k]}`),
      {sticky: true});
    return [line, view.since[k]];
  });
  show();
}
function show() {
  const t = Number(round.value);
  at.textContent = round.value;
  let seen = 0;
  for (const [line, since] of lines) {
    if (since <= t) seen++;
    if (since <= t !== driven.hasLayer(line)) since <= t ? driven.addLayer(line) : driven.removeLayer(line);
  }
  summary.textContent = `${seen} of ${net.courses.length} road edges driven`;
  if (details.open) fillTables();
}

// -- legend and table ---------------------------------------------------------------------------------------------
const swatch = (colour, height, text) => {
  const rule = make("i");
  Object.assign(rule.style, {background: colour, height: height + "px"});
  return make("div", "", rule, text);
};
addLegend(map).append(make("b", "", "Rounds driven"), ...classes.map(c => swatch(c.colour, c.weight, c.text)),
  ...(best.length ? [swatch("%LINES%73", 9, "best path, without regret")] : []));

function fillTables() {
  const t = Number(round.value);
  const known = (view, c) => view.visits.filter((v, k) => classes[classOf(v)] === c && view.since[k] <= t).length;
  const rows = views.map(view =>
    [view.name, view.since.filter(s => s <= t).length, ...classes.map(c => known(view, c))].map(String));
  const head = ["Agent", "Total", ...classes.map(c => c.text)];
  document.getElementById("tables").replaceChildren(table(`Road edges driven up to round ${t}`, head, rows));
}

// -- controls -----------------------------------------------------------------------------------------------------
agent.append(...views.map(view => make("option", "", view.name)));
round.max = rounds;  // before the value, which must not exceed it
round.value = rounds;
let timer = 0;
const stop = () => {
  clearInterval(timer);
  timer = 0;
  play.textContent = "Play";
};
play.onclick = () => {
  if (timer) return stop();
  if (Number(round.value) >= rounds) round.value = 1;
  play.textContent = "Stop";
  timer = setInterval(() => {
    round.value = Math.min(rounds, Number(round.value) + Math.max(1, Math.round(rounds / 100)));
    show();
    if (Number(round.value) >= rounds) stop();
  }, 80);
};
round.addEventListener("input", () => { stop(); show(); });
agent.addEventListener("change", draw);
draw();
