/** An animated map: units drive to calls. Times of `views[0]` are tenths of a minute; `home` is each unit's
 *  station. Until its `release` a unit is busy with a call from before the start, whose place is not known. Without
 *  `drives` a unit drives to its calls, and is back at its station when it is free; with them it drives to what they name. */
function replay(root, scene, views, port) {
  const {stations, home, shapes, minutes} = scene;
  const play = make("button", "", "Play"), slider = make("input"), clock = make("output"), speed = make("select");
  play.type = "button";
  Object.assign(slider, {type: "range", min: 0, max: minutes, step: 1, value: 0});
  const speeds = [1, 5, 15, 60];
  speed.append(...speeds.map(rate => make("option", "", `${rate} min per second`)));
  speed.selectedIndex = 1;
  const controls = make("div", "controls", play, make("label", "", "Time ", slider, clock), make("label", "", "Speed ", speed));
  const {summary, box, refill, details} = lay(root, scene, port, [controls], tables);
  summary.setAttribute("role", "timer");  // which is not read out at every change

  // -- what stays ---------------------------------------------------------------------------------------------------
  const map = openMap(box, port, {plane: scene.plane, bounds: L.latLngBounds(scene.bounds).pad(0.03)});
  const style = {color: "#fff", weight: 0.5, fillColor: "#d2d9de", fillOpacity: 1, interactive: false};
  shapes.forEach(shape => L.geoJSON(shape, {style, interactive: false}).addTo(map));
  if (!shapes.length && scene.counted)  // otherwise nothing would show where calls come from
    scene.calls.forEach(at => L.circleMarker(at, {radius: 2, stroke: false, fillColor: "#9aa5ad", fillOpacity: 1, interactive: false}).addTo(map));
  map.createPane("moving").style.zIndex = 650;  // above the stations
  map.getPane("moving").style.pointerEvents = "none";
  const renderer = L.canvas({pane: "moving"}), dot = {pane: "moving", renderer, interactive: false, fillOpacity: 1};
  const houses = stations.map((station, k) => {
    const icon = make("div", "station", ""), names = home.filter(each => each === k).length;
    const marker = asButton(L.marker(station.at, {icon: L.divIcon({html: icon, className: "", iconSize: [20, 20]})}),
      `${station.name}: ${names} ${names === 1 ? "unit" : "units"}`);
    return {icon, marker: marker.bindTooltip(make("span", "", station.name)).addTo(map)};
  });

  // -- what moves: a dot for each unit and for its call ---------------------------------------------------------------
  const {hospitals = [], counted = ["calls", "Calls", "Mean response, min"]} = scene;
  for (const at of hospitals) L.marker(at, {keyboard: false, icon: L.divIcon({html: "H", className: "hospital", iconSize: [16, 16]})})
    .bindTooltip(make("span", "", "hospital")).addTo(map);
  const looks = {drives: "%LINES%", serves: "#0b5394", returns: "#6b7680", lost: "#a3006b"};
  const units = home.map(k => ({home: stations[k].at, jobs: [], legs: [],
    dot: L.circleMarker(stations[k].at, {...dot, radius: 6, color: "#fff", weight: 1.5}),
    call: L.circleMarker(stations[k].at, {...dot, radius: 4, color: "#111", weight: 1, fillColor: "#fff"}),
    way: L.polyline([], {...dot, color: looks.drives, weight: 1.5, opacity: 0.7})}));
  const places = [...stations.map(each => each.at), ...scene.calls, ...hospitals];
  let events = null, lost = [];
  const lostDots = L.layerGroup().addTo(map), SHOWN = 30;  // a lost call is shown for three minutes
  const place = k => scene.calls[events.place[k]];
  /** Return how many entries of the ascending list are at most t. */
  function upTo(list, value, t) {
    let low = 0, high = list.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      value(list[middle]) <= t ? low = middle + 1 : high = middle;
    }
    return low;
  }
  const between = (from, to, share) => from.map((x, k) => x + (to[k] - x) * share);
  const driven = (leg, t) => t < leg.there ? (t - leg.go) / (leg.there - leg.go) : 1;
  const where = (leg, t) => between(leg.from, leg.at, driven(leg, t));
  /** Return the drives of unit k: when, and to which place among stations, calls and hospitals. */
  function legsOf(k) {
    const legs = [];
    const add = (go, there, to) => legs.push({go, there, to, at: places[to]});
    if (events.drives) {
      const {unit, go, there, to} = events.drives;
      unit.forEach((each, n) => { if (each === k) add(go[n], there[n], to[n]); });
    } else for (const job of units[k].jobs) {
      const {go, there, free} = events;
      if (free[job] > go[job]) add(go[job], there[job], stations.length + events.place[job]);
      add(free[job], free[job], home[k]);
    }
    legs.forEach((leg, n) => { leg.from = n ? where(legs[n - 1], leg.go) : units[k].home; });
    return legs;
  }
  const toggle = (layer, on) => { if (on !== map.hasLayer(layer)) on ? layer.addTo(map) : layer.remove(); };

  let now = 0, waiting = [];
  function show(minute) {
    now = minute;
    const t = 10 * minute, at = k => events.at[k];  // times of events are tenths of a minute
    const free = stations.map(() => 0);
    let busy = 0;
    units.forEach((unit, k) => {
      const job = unit.jobs[upTo(unit.jobs, at, t) - 1], leg = unit.legs[upTo(unit.legs, each => each.go, t) - 1];
      const active = job !== undefined && t < events.free[job], earlier = t < events.release[k];
      const moves = leg !== undefined && t < leg.there;
      const station = leg === undefined ? home[k] : moves || leg.to >= stations.length ? -1 : leg.to;
      busy += active || earlier;
      if (station >= 0) free[station] += !earlier;
      else {
        const back = leg.to < stations.length, carries = leg.to >= stations.length + scene.calls.length;
        unit.dot.setStyle({fillColor: !moves || carries ? looks.serves : back ? looks.returns : looks.drives});
        unit.dot.setLatLng(where(leg, t));
        unit.way.setLatLngs([unit.dot.getLatLng(), leg.at]);
      }
      if (active) unit.call.setLatLng(place(job));
      toggle(unit.way, station < 0 && moves && leg.to >= stations.length);
      toggle(unit.call, active && t < events.there[job]);
      toggle(unit.dot, station < 0);
    });
    free.forEach((count, k) => {
      if (waiting[k] === count) return;
      houses[k].icon.textContent = count;
      houses[k].icon.classList.toggle("empty", count === 0);
    });
    waiting = free;
    lostDots.clearLayers();
    const gone = upTo(lost, at, t);
    for (let k = gone - 1; k >= 0 && at(lost[k]) > t - SHOWN; k--)
      L.circleMarker(place(lost[k]), {...dot, radius: 8, color: looks.lost, weight: 3, fillOpacity: 0}).addTo(lostDots);
    const hour = Math.floor(scene.clock + minute), two = x => String(x).padStart(2, "0");
    const text = `${two(Math.floor(hour / 60) % 24)}:${two(hour % 60)}`;
    clock.textContent = text;
    const came = upTo(events.order, at, t), day = Math.floor(hour / 1440);
    const date = scene.date ? new Date(Date.parse(scene.date) + 864e5 * day).toISOString().slice(0, 10) : `day ${day + 1}`;
    summary.textContent = `${date}, ${text} · ${busy} of ${units.length} units busy · ${came} ${counted[0]}` +
      (lost.length ? `, ${gone} of them lost` : "");
  }
  function update([next]) {
    events = next;
    events.order = next.at.map((_, k) => k).sort((a, b) => next.at[a] - next.at[b]);
    lost = events.order.filter(k => next.unit[k] < 0);
    units.forEach((unit, k) => {
      unit.jobs = events.order.filter(each => next.unit[each] === k);
      unit.legs = legsOf(k);
    });
    show(now);
    refill();
  }

  // -- legend and table -------------------------------------------------------------------------------------------------
  const row = (look, text) => {
    const sign = make("i"), mark = make("span");
    Object.assign(mark.style, {width: "10px", height: "10px", borderRadius: "50%", ...look});
    sign.append(mark);
    return make("div", "row", sign, text);
  };
  addLegend(map).append(make("b", "", "Units"), row({background: "#111", borderRadius: 0}, "station, units there"),
    row({background: looks.drives}, "on the way"), row({background: looks.serves}, scene.counted ? "at a call, or with a patient" : "at a call"),
    ...(hospitals.length ? [row({border: "1.5px solid #a3006b", boxSizing: "border-box", borderRadius: 0}, "hospital (H)")] : []),
    ...(scene.counted ? [row({background: looks.returns}, "back to a station")] : []),
    row({border: "1px solid #111", boxSizing: "border-box"}, "call that waits"),
    row({border: `3px solid ${looks.lost}`, boxSizing: "border-box"}, "call lost to others"));
  function tables() {
    const mean = list => list.length ? (list.reduce((a, b) => a + b, 0) / list.length / 10).toFixed(1) : "–";
    const rows = stations.map((station, s) => {
      const own = units.filter((_, k) => home[k] === s), jobs = own.flatMap(unit => unit.jobs);
      return [station.name, own.length, jobs.length, mean(jobs.map(k => events.there[k] - events.at[k]))].map(String);
    });
    return [table("Calls answered", ["Station", "Units", ...counted.slice(1)], rows)];
  }

  // -- the clock runs ---------------------------------------------------------------------------------------------------
  let frame = 0, last = 0;
  const stop = () => {
    cancelAnimationFrame(frame);
    frame = 0;
    play.textContent = "Play";
  };
  const step = time => {
    // A hidden tab gets no frames; the clock must not jump when it is shown again.
    const minute = Math.min(minutes, now + speeds[speed.selectedIndex] * Math.min(time - last, 250) / 1000);
    last = time;
    show(minute);
    slider.value = minute;
    frame = requestAnimationFrame(step);
    if (minute >= minutes) stop();
  };
  play.onclick = () => {
    if (frame) return stop();
    if (now >= minutes) show(0);
    play.textContent = "Pause";
    last = performance.now();
    frame = requestAnimationFrame(step);
  };
  slider.addEventListener("input", () => show(Number(slider.value)));
  update(views);
  map.fit();
  return {update, remove: () => { stop(); map.remove(); }};
}
