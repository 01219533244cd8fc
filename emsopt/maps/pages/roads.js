/** A map of where agents drove on a road network. Every view is an agent. */
function roads(root, scene, views, port) {
  const {net, classes, route, best, rounds} = scene;
  const agent = make("select"), round = make("input"), at = make("output"), play = make("button", "", "Play");
  Object.assign(round, {type: "range", min: 1, max: rounds, value: rounds});
  play.type = "button";
  const controls = make("div", "controls", make("label", "", "Agent ", agent),
    make("label", "", "Up to round ", round, at), play);
  const {summary, box, details, refill} = lay(root, scene, port, [controls], tables);

  // -- the map -----------------------------------------------------------------------------------------------------
  const courses = net.courses.map(steps => course(steps, net.scale));
  const map = openMap(box, port, {plane: net.plane, bounds: L.latLngBounds(courses.flat())});
  L.polyline(courses, {color: "%ROADS%", weight: 1, interactive: false}).addTo(map);
  if (best.length)
    L.polyline(best.map(edge => courses[edge]), {color: "%LINES%", weight: 9, opacity: 0.45, interactive: false}).addTo(map);
  const driven = L.layerGroup().addTo(map);
  for (const [text, edge, last] of route) {
    const points = courses[edge], name = text === "A" ? "start" : "end";
    L.marker(points[last ? points.length - 1 : 0], {icon: L.divIcon({html: make("div", "end", text), className: "",
      iconSize: [20, 20]}), keyboard: false}).bindTooltip(make("span", "", name)).addTo(map);
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
    refill();
  }

  // -- legend and table ---------------------------------------------------------------------------------------------
  const swatch = (colour, height, text) => {
    const rule = make("i");
    Object.assign(rule.style, {background: colour, height: height + "px"});
    return make("div", "row", rule, text);
  };
  addLegend(map).append(make("b", "", "Rounds driven"), ...classes.map(c => swatch(c.colour, c.weight, c.text)),
    ...(best.length ? [swatch("%LINES%73", 9, "best path, without regret")] : []));

  function tables() {
    const t = Number(round.value);
    const known = (view, c) => view.visits.filter((v, k) => classes[classOf(v)] === c && view.since[k] <= t).length;
    const rows = views.map(view =>
      [view.name, view.since.filter(s => s <= t).length, ...classes.map(c => known(view, c))].map(String));
    return [table(`Road edges driven up to round ${t}`, ["Agent", "Total", ...classes.map(c => c.text)], rows)];
  }

  // -- controls -----------------------------------------------------------------------------------------------------
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
    // A hundred steps of 80 ms: it plays for 8 s, however many rounds there are.
    timer = setInterval(() => {
      round.value = Math.min(rounds, Number(round.value) + Math.max(1, Math.round(rounds / 100)));
      show();
      if (Number(round.value) >= rounds) stop();
    }, 80);
  };
  round.addEventListener("input", () => { stop(); show(); });
  agent.addEventListener("change", draw);
  function update(next) {
    views = next;
    agent.replaceChildren(...views.map(view => make("option", "", view.name)));
    draw();
  }
  update(views);
  map.fit();
  return {update, remove: () => { stop(); map.remove(); }};
}
