/** A live sheet: a map of deployments that the reader changes, with results computed by hypercube.js. */
function sheet(root, scene, views, port) {
  // The file as it came; "Save a copy" writes it with another state. Nothing has been drawn yet.
  const source = "<!doctype html>\n" + document.documentElement.outerHTML;
  const city = unpack(scene.model), {own, placeOf, siteNames, scales} = scene, {places, atoms} = scene.city;
  const today = views[0].name, twinsAt = places.map((_, k) => [...placeOf.keys()].filter(site => placeOf[site] === k));
  const goals = {response: "Mean response", late: "Share of late responses"};
  const initial = {demand: 100, goal: "response", sites: views.at(-1).sites, ...scene.start};

  // -- the state, which stands in the address -------------------------------------------------------------------------
  const toHash = ({demand, threshold, goal, queue, sites}) =>
    `#demand=${demand}&late=${threshold}&goal=${goal}&busy=${queue ? "wait" : "lost"}&units=${sites.join(".")}`;
  function fromHash(hash) {
    const given = new URLSearchParams(hash.slice(1)), number = (name, low, high, otherwise) => {
      const value = Number(given.get(name) || NaN);
      return value >= low && value <= high ? value : otherwise;
    };
    const sites = (given.get("units") ?? "").split(".").filter(Boolean).map(Number);
    return {
      demand: number("demand", 5, 300, initial.demand), threshold: number("late", 0.1, 240, initial.threshold),
      goal: given.get("goal") in goals ? given.get("goal") : initial.goal,
      queue: given.has("busy") ? given.get("busy") === "wait" : initial.queue,
      sites: sites.length && sites.every(site => site in siteNames) ? sites.sort((a, b) => a - b) : initial.sites,
    };
  }
  let state = fromHash(location.hash), past = [], sliding = false;
  function change(changes, said = "") {
    if (!(sliding && "demand" in changes)) past.push(state);  // the steps of a slider are undone together
    sliding = "demand" in changes;
    state = {...state, ...changes};
    tell(said);
    show();
  }

  // -- the page -------------------------------------------------------------------------------------------------------
  const button = (text, press, label = text) => {
    const made = make("button", "", text);
    made.type = "button";
    made.setAttribute("aria-label", label);
    made.onclick = press;
    return made;
  };
  const field = (label, ...parts) => make("label", "", label, ...parts);
  const input = (options, press) => {
    const made = Object.assign(make("input"), options);
    made.oninput = press;
    return made;
  };
  const select = (options, press) => {
    const made = make("select", "", ...Object.entries(options).map(([value, text]) => Object.assign(make("option", "", text), {value})));
    made.onchange = press;
    return made;
  };
  const status = make("p", "status"), tell = text => { status.textContent = text; };
  const trouble = make("p", "trouble");
  status.setAttribute("role", "status");
  trouble.setAttribute("role", "alert");
  const figures = make("div", "figures"), map = make("div", "emsopt-map");
  const demand = input({type: "range", min: 5, max: 300, step: 5}, () => change({demand: Number(demand.value)}));
  const calls = make("output"), fleet = make("output");
  const threshold = input({type: "number", min: 0.5, max: 240, step: 0.5},
    () => threshold.value >= 0.1 && threshold.value <= 240 && change({threshold: Number(threshold.value)}));
  const goal = select(goals, () => change({goal: goal.value}));
  const queue = select({lost: "are lost to others", wait: "wait"}, () => change({queue: queue.value === "wait"}));
  const undo = button("Undo", () => {
    state = past.pop();
    sliding = false;
    tell("");
    show();
  });
  const controls = make("div", "controls", field("Demand", demand, calls), field("Late from", threshold, "min"),
    make("span", "", "Units ", button("−", () => best("remove"), "Remove the unit that matters least"), fleet,
      button("+", () => best("add"), "Add a unit where it helps most")),
    field("Goal", goal), field("If all units are busy, calls", queue));
  const buttons = make("div", "controls", button("Best single move", () => best("move")), undo,
    ...views.map(({name, sites}) => button(`Back to “${name}”`, () => change({sites}))), button("Save a copy", save));
  const rows = places.map((place, k) => {
    const cells = [make("td", "", place.name), make("td"), make("td"), make("td")], count = make("output");
    cells[1].append(button("−", () => remove(k), `Remove a unit from ${place.name}`), count,
      button("+", () => add(k), `Add a unit to ${place.name}`));
    return {row: make("tr", "", ...cells), count, busy: cells[2], share: cells[3], less: cells[1].firstChild};
  });
  const list = table("", ["Station", "units", "busy", "of answered calls"], []);
  list.tBodies[0].append(...rows.map(({row}) => row));
  root.classList.add("sheet");
  root.replaceChildren(make("div", "head", make("h1", "", scene.title), figures, make("div", "panel", controls, buttons, status, trouble)), map,
    make("div", "foot", make("details", "", make("summary", "", "Stations and units"), list),
      make("details", "", make("summary", "", "What this sheet leaves out"), ...leftOut().map(text => make("p", "", text)))));

  function leftOut() {
    const minutes = [...city.mean], ratio = Math.max(...minutes) / Math.min(...minutes);
    return [
      "Results are expected values in the long run, by the approximate hypercube model, at a constant rate of calls. The first free unit in the order of an area answers a call there, alone and from its station.",
      "Left out are hours of the day and moves of units during them, units that are sent while they drive back, priorities, calls that need several units, and congestion: travel and service times stay as they are when demand changes.",
      "For 15 units, mean responses are typically 0.02 to 0.09 min too low, more where load is high or placement poor. The best single move is not the best deployment: several moves together may gain more. Check a plan with the exact model or a simulation before you act on it.",
      ...(city.varies ? [] : ["Times do not vary around their means in this city, so late shares and percentiles are too optimistic."]),
      ...(ratio > 2 ? [`Mean service times of stations differ by a factor of up to ${ratio.toFixed(1)}: the share of calls that find all units busy can be several times too high.`] : []),
      `A best move puts at most ${scene.most} ${scene.most === 1 ? "unit" : "units"} at one site; by hand there is no limit.`,
    ];
  }

  // -- what the reader does to units ----------------------------------------------------------------------------------
  const held = (sites, site) => sites.filter(other => other === site).length;
  const fullest = k => twinsAt[k].reduce((a, b) => held(state.sites, b) > held(state.sites, a) ? b : a);
  const emptiest = k => twinsAt[k].reduce((a, b) => held(state.sites, b) < held(state.sites, a) ? b : a);
  const unitsAt = k => state.sites.filter(site => placeOf[site] === k).length;
  const add = k => change({sites: replaced(state.sites, null, emptiest(k))}, `A unit was added at ${places[k].name}.`);
  const remove = k => state.sites.length > 1
    ? change({sites: replaced(state.sites, fullest(k), null)}, `A unit was removed from ${places[k].name}.`)
    : tell("At least one unit must remain.");
  const move = (from, to) => {
    moving = null;
    if (from === to) return show();
    change({sites: replaced(state.sites, fullest(from), emptiest(to))}, `A unit moved from ${places[from].name} to ${places[to].name}.`);
  };
  let moving = null;
  /** A tap on a station ends a move that was begun, or offers what can be done there. */
  function press(k) {
    if (moving !== null) return move(moving, k);
    const act = (text, action) => button(text, () => {
      map.map.closePopup();
      action();
      map.querySelector(`[data-place="${k}"]`)?.focus({preventScroll: true});
    });
    const actions = [act("Add a unit", () => add(k))];
    if (unitsAt(k)) actions.unshift(act("Move a unit", () => {
      moving = k;
      tell(`Choose the station to which a unit of ${places[k].name} moves. Escape ends this.`);
    }), act("Remove a unit", () => remove(k)));
    const node = make("div", "actions", make("strong", "", places[k].name), ...actions);
    L.popup().setLatLng(places[k].at).setContent(node).openOn(map.map);
    actions[0].focus({preventScroll: true});
  }
  root.addEventListener("keydown", event => {
    if (event.key !== "Escape" || moving === null) return;
    moving = null;
    tell("");
  });
  function best(kind) {
    const {sites, demand, queue, goal} = state, costs = goal === "late" ? late() : city.response;
    if (kind === "remove" && sites.length === 1) return tell("At least one unit must remain.");
    const search = most => bestChange(city, sites, demand / 100, queue, costs, kind, most);
    const found = search(scene.most) ?? (kind === "add" ? search(Infinity) : null), value = kept.is[goal === "late" ? "lateShare" : "meanResponse"];
    if (!found || kind === "move" && !(found.value < value - 1e-6)) return tell("No single move improves this.");
    const said = {move: `from ${siteNames[found.from]} to ${siteNames[found.to]}`, add: `added at ${siteNames[found.to]}`,
      remove: `removed from ${siteNames[found.from]}`}[kind];
    change({sites: found.sites}, `Best for the goal: a unit ${said}. ${goals[goal]}: ${shown(goal, value)} before, ${shown(goal, found.value)} now.`);
  }
  const percent = (share, digits = 1) => (100 * share).toFixed(digits) + " %";
  const shown = (goal, value) => value === undefined ? "no result" : goal === "late" ? percent(value, 2) : value.toFixed(3) + " min";

  // -- results --------------------------------------------------------------------------------------------------------
  const kept = {};  // results and late chances that may be needed again
  /** The late chances of all pairs for the threshold, computed anew only when it changes. */
  function late() {
    if (kept.threshold !== state.threshold) Object.assign(kept, {threshold: state.threshold, late: lateChances(city, state.threshold)});
    return kept.late;
  }
  function show() {
    const {demand: level, queue: waits, sites} = state;
    const result = (name, there) => {  // computed anew only when something on which it depends has changed
      const key = [level, waits, state.threshold, ...there].join();
      if (kept[name]?.key !== key) kept[name] = {...evaluate(city, there, level / 100, waits, late(), kept[name]?.percentile90), key};
      return kept[name];
    };
    const was = result("was", views[0].sites), is = result("is", sites), fault = is.fault ?? was.fault;
    trouble.textContent = fault ? (is.fault ? "" : `For “${today}”: `) + fault : "";
    if (location.protocol !== "about:") history.replaceState(null, "", toHash(state));  // a frame in a notebook has no address
    Object.assign(demand, {value: level});
    calls.textContent = `${level} %: ${(city.rates.reduce((a, b) => a + b) * level / 100).toPrecision(3)} calls/h`;
    if (document.activeElement !== threshold) threshold.value = state.threshold;
    [goal.value, queue.value, fleet.textContent, undo.disabled] = [state.goal, waits ? "wait" : "lost", sites.length, !past.length];
    figures.replaceChildren(figuresTable(was, is));
    const counted = byPlace(sites, is);
    rows.forEach(({count, busy, share, less}, k) => {
      const {units, used, answered} = counted[k];
      [count.textContent, busy.textContent, share.textContent] = [units, units && !is.fault ? percent(used / units) : "", units && !is.fault ? percent(answered) : ""];
      less.disabled = !units;
    });
    const compared = view(today, views[0].sites, was);
    drawn.update([view(own, sites, is), compared, difference(was, is, compared)]);
  }
  function figuresTable(was, is) {
    const lines = [
      ["Mean response, min", e => e.meanResponse, 2], [`${state.threshold} min or more, %`, e => 100 * e.lateShare, 1],
      ["90th percentile, min", e => e.percentile90, 1], ["Worst area, min", e => e.atomResponse[e.worst], 1],
      ["Mean utilisation, %", e => 100 * e.rho.reduce((a, b) => a + b) / e.rho.length, 1], ["Busiest unit, %", e => 100 * Math.max(...e.rho), 1],
      state.queue ? ["Mean wait, min", e => e.wait, 2] : ["Calls lost, %", e => 100 * e.blocked, 2],
    ];
    return table("", ["", today, own, "change"], lines.map(([label, get, digits]) => {
      const cell = e => e.fault ? "–" : get(e).toFixed(digits);
      const gap = is.fault || was.fault ? "–" : (get(is) - get(was)).toFixed(digits).replace(/^-(0\.?0*)$/, "$1");
      return [label, cell(was), cell(is), gap.startsWith("-") || /^[0.–]*$/.test(gap) ? gap.replace("-", "−") : "+" + gap];
    }));
  }
  /** Return units, busy units and share of answered calls at each place. */
  function byPlace(sites, {rho, unitShares}) {
    const found = places.map(() => ({units: 0, used: 0, answered: 0, rows: []}));
    sites.forEach((site, i) => {
      const at = found[placeOf[site]];
      at.units += 1;
      if (!rho) return;
      at.used += rho[i];
      at.answered += unitShares[i];
      at.rows.push([siteNames[site], percent(rho[i]), percent(unitShares[i])]);
    });
    return found;
  }

  // -- views, as emsopt.maps.deployments makes them -------------------------------------------------------------------
  const counted = units => `${units} ${units === 1 ? "unit" : "units"}`;
  const classes = (scale, values) => {
    const known = values.filter(value => value !== null), {edges} = scale;
    return {...scale, below: known.some(v => v < edges[0] - 1e-9), above: known.some(v => v > edges.at(-1) + 1e-9)};
  };
  const columnOf = result => [...atoms.name.keys()].map(j => result.fault ? null
    : state.goal === "late" ? 100 * result.atomLate[j] : result.atomResponse[j]);
  const column = (values, which = "") => ({label: (state.goal === "late" ? `Late (${state.threshold} min or more)` : "Mean response") + which,
    unit: state.goal === "late" ? "%" : "min", digits: state.goal === "late" ? 1 : 2, values});
  function view(name, sites, result) {
    const values = columnOf(result), {m} = city, fractions = places.map(() => null), lines = [];
    if (!result.fault) sites.forEach((site, i) => {
      const sums = fractions[placeOf[site]] ??= new Float64Array(m);
      for (let j = 0; j < m; j++) sums[j] += result.shares[i * m + j];
    });
    fractions.forEach((sums, k) => sums?.forEach((sum, j) => { if (sum >= 0.02) lines.push([k, j, sum]); }));
    const units = byPlace(sites, result).flatMap(({units, used, answered, rows}, k) => !units ? [] : [{at: k, tone: "", text: String(units), rows,
      label: counted(units) + (result.fault ? "" : `, ${percent(used / units, 0)} busy, ${percent(answered)} of answered calls`)}]);
    const summary = `${name}: ` + (result.fault ?? `${counted(sites.length)}, worst area: ${atoms.name[result.worst]}`);
    return {name, summary, hint: " Lines: who answers; shares below 2% are left out.", classes: classes(scales[state.goal][0], values),
      columns: [column(values)], units, lines};
  }
  function difference(was, is, {units: before}) {
    const [old, now] = [columnOf(was), columnOf(is)], values = now.map((v, j) => v === null || old[j] === null ? null : v - old[j]);
    const name = `${own} minus ${today}`, units = places.flatMap((place, k) => {
      const mine = unitsAt(k), theirs = Number(before.find(entry => entry.at === k)?.text ?? 0), gap = mine - theirs;
      return !mine && !theirs ? [] : [{at: k, tone: gap > 0 ? "gain" : gap < 0 ? "loss" : "", text: gap > 0 ? `+${gap}` : gap < 0 ? `−${-gap}` : String(mine),
        label: `${counted(mine)} in ${own}, ${theirs} in ${today}`, rows: [[place.name, String(mine), String(theirs)]]}];
    });
    return {name, summary: name, hint: ` Blue: ${own} is better. Orange: ${today} is better.`, compared: [own, today], lines: [], units,
      classes: classes(scales[state.goal][1], values), columns: [column(values, `: ${name}`), column(now, `, ${own}`), column(old, `, ${today}`)]};
  }

  /** Write this file anew, so that it opens with the present state. */
  function save() {
    const data = JSON.stringify({...scene, views, start: state});
    const safe = data.replace(/[<>&\u2028\u2029]/g, letter => "\\u" + letter.charCodeAt(0).toString(16).padStart(4, "0"));
    const text = source.replace(/(<script type="application\/json" id="data">)[^]*?(<\/script>)/, (_, start, end) => start + safe + end);
    const link = make("a");
    link.href = URL.createObjectURL(new Blob([text], {type: "text/html"}));
    link.download = `${scene.title.replace(/[^\p{L}\p{N} -]+/gu, " ").trim() || "sheet"}.html`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    tell(`Saved as ${link.download}, with the deployment that you see.`);
  }

  const blank = {name: own, summary: "", hint: "", classes: scales.response[0], columns: [column(atoms.name.map(() => null))], units: [], lines: []};
  const drawn = deployments(map, scene, [blank], Object.assign(port, {page: false, edit: own, shown: own, press, move,
    layers: {"Who answers": false, "Calls (area of circle)": false}}));
  window.addEventListener("hashchange", () => {
    state = fromHash(location.hash);
    show();
  });
  show();
}
