// The approximate hypercube of emsopt.evaluators.approximate and the response law of emsopt.city.travel, in the
// browser. Symbols are those of these modules. Matrices (N, M) are flat arrays, row by row.

/** Return the arrays of a packed city; a matrix with one number per row, or only one, is filled up. */
function unpack(packed) {
  const {sites: n, atoms: m} = packed, types = {f8: Float64Array, u2: Uint16Array}, city = {...packed, n, m};
  for (const [name, {type, text}] of Object.entries(packed.arrays))
    city[name] = new types[type](Uint8Array.from(atob(text), letter => letter.charCodeAt(0)).buffer);
  const filled = values => values.length === n * m ? values
    : Float64Array.from({length: n * m}, (_, k) => values[values.length === n ? Math.floor(k / m) : 0]);
  for (const name of ["travel", "service", "travelSpread", "ranks"]) city[name] = filled(city[name]);
  const sum = city.rates.reduce((a, b) => a + b);
  city.share = city.rates.map(rate => rate / sum);
  city.response = city.travel.map((minutes, k) => city.turnout[Math.floor(k / m)] + minutes);
  city.varies = city.travelSpread.some(Boolean) || city.turnoutSpread.some(Boolean);
  city.mean = Float64Array.from({length: n}, (_, i) => city.share.reduce((s, w, j) => s + w * city.service[i * m + j], 0));
  city.even = city.mean.map((_, i) => city.service.subarray(i * m, (i + 1) * m).every(v => v === city.service[i * m]));
  return city;
}

// -- the queueing model ---------------------------------------------------------------------------------------------

/** Return the units in each atom's order of preference, (M, p): by the rank of their site, then by index. */
function unitOrder({m, ranks}, sites) {
  const p = sites.length, order = new Uint16Array(m * p);
  for (let j = 0; j < m; j++)
    for (let i = 0, start = j * p; i < p; i++) {
      const rank = ranks[sites[i] * m + j];
      let k = start + i;
      // Stable: units of equal rank keep their order.
      for (; k > start && ranks[sites[order[k - 1]] * m + j] > rank; k--) order[k] = order[k - 1];
      order[k] = i;
    }
  return order;
}

/** Fill the correction factors Q(p, ρ̄, r); return ρ̄ and the probability that all units are busy. */
function correction(load, queue, Q) {
  const p = Q.length, P = new Float64Array(p + 1), mode = load >= p ? p : Math.floor(load);
  P[mode] = 1;  // outwards from the mode of P(k), so that nothing overflows
  for (let k = mode + 1; k <= p; k++) P[k] = P[k - 1] * load / k;
  for (let k = mode; k > 0; k--) P[k - 1] = P[k] * k / load;
  if (queue) P[p] /= 1 - load / p;  // p or more calls in the system
  const sum = P.reduce((a, b) => a + b);
  let mean = P[p] / sum, idle = 0;  // ρ̄ and 1 - ρ̄, both without subtraction
  for (let k = 0; k < p; k++) {
    P[k] /= sum;
    mean += P[k] * k / p;
    idle += P[k] * (p - k) / p;
  }
  const term = P.map((chance, k) => chance * (p - k));
  for (let r = 0; r < p; r++) {
    let total = 0;
    for (let k = r; k < p; k++) {
      total += term[k];
      term[k] *= (k - r) / ((p - r) * mean);  // the sum in (2) for the next r has these terms, but for a factor
    }
    Q[r] = total / ((p - r) * idle);
  }
  return [mean, P[p] / sum];
}

/** Scale utilisations in place to a given sum; the excess of a unit that would reach 1 goes to the others. */
function scaleTo(rho, total) {
  const busiest = 1 - 1e-15;
  for (let clipped = true; clipped;) {
    let full = 0, rest = 0;
    for (const r of rho) r >= busiest ? full += r : rest += r;
    clipped = false;
    for (let i = 0; rest && i < rho.length; i++)
      if (rho[i] < busiest) {
        rho[i] *= (total - full) / rest;
        if (rho[i] >= busiest) [rho[i], clipped] = [busiest, true];
      }
  }
}

/**
 * Solve the equations (3) for units at `sites` and demand times `scale`. Returns the share of each atom's calls that
 * each unit answers at once, (p, M), or the `fault` why there is no solution. Unlike Python, the lists of units are
 * followed to their ends in large fleets too, and steps are not extrapolated.
 */
function solve(city, sites, scale, queue, tol = 1e-10) {
  const {m, service, mean: minutes} = city, p = sites.length, order = unitOrder(city, sites);
  const rates = city.rates.map(rate => rate * scale / 60), total = rates.reduce((a, b) => a + b);
  const first = service[sites[0] * m], Q = new Float64Array(p), V = new Float64Array(p), full = p * (1 - 1e-9);
  const alike = sites.every(site => city.even[site] && service[site * m] === first);
  let freeRate = 0;
  for (const site of sites) freeRate += 1 / minutes[site];
  let load = total * p / freeRate, moved = Infinity, before = Infinity, damping = 1;
  const unstable = {fault: "The queue grows without bound: calls arrive faster than the units can serve them. Add units or lower the demand."};
  if (queue && load >= full) return unstable;
  let [mean, blocked] = correction(load, queue, Q);
  const rho = new Float64Array(p).fill(mean);
  for (let step = 1; moved > tol; step++) {
    if (step > 2000) return {fault: "The approximate model does not converge here. Lower the demand or add units."};
    V.fill(0);
    load = alike ? load : 0;
    for (let j = 0, at = 0; j < m; j++) {
      let busy = 1, answered = 0, work = 0;
      if (alike) {
        busy = rates[j] * first;
        for (let k = 0; k < p; k++, at++) {
          const i = order[at];
          V[i] += Q[k] * busy;
          busy *= rho[i];
        }
        continue;
      }
      for (let k = 0; k < p; k++, at++) {
        const i = order[at], chance = Q[k] * busy, s = service[sites[i] * m + j];
        V[i] += rates[j] * s * chance;
        answered += chance * (1 - rho[i]);
        work += chance * (1 - rho[i]) * s;
        busy *= rho[i];
      }
      if (answered > 0) load += rates[j] * work / answered;  // the work if each call were answered (Jarvis 1985)
    }
    if (!alike) {
      // Calls that waited are served by whichever unit is free next.
      if (queue) load = Math.min((1 - blocked) * load + blocked * total * p / freeRate, full);
      [mean, blocked] = correction(load, queue, Q);
    }
    const queued = queue ? blocked * total / freeRate : 0;
    for (let i = 0; i < p; i++) V[i] = (V[i] + queued) / (1 + V[i]);
    scaleTo(V, p * mean);
    moved = 0;
    for (let i = 0; i < p; i++) {
      moved = Math.max(moved, Math.abs(V[i] - rho[i]));
      rho[i] += damping * (V[i] - rho[i]);
    }
    if (step % 50 === 0) {  // shorten the step if the iteration has overshot for long
      if (moved > 0.5 * before) damping *= 0.5;
      before = moved;
    }
  }
  if (queue && load >= p * (1 - 1e-8)) return unstable;
  const shares = new Float64Array(p * m);
  for (let j = 0; j < m; j++) {
    let busy = 1, sum = 0;
    for (let k = 0; k < p; k++) {
      const i = order[j * p + k];
      sum += shares[i * m + j] = Q[k] * busy * (1 - rho[i]);
      busy *= rho[i];
    }
    for (let i = 0; i < p; i++) {
      shares[i * m + j] /= sum;
      if (queue) shares[i * m + j] = (1 - blocked) * shares[i * m + j] + blocked / minutes[sites[i]] / freeRate;
    }
  }
  return {rho, shares, blocked, wait: queue ? blocked / (freeRate - total) : 0};
}

/** Return the mean of `costs`, (N, M), over answered calls; NaN if there is no solution. */
function meanCost(city, sites, scale, queue, costs) {
  const {m, share} = city, {shares, fault} = solve(city, sites, scale, queue, 1e-8);  // 1e-8 is enough to compare deployments
  let sum = fault ? NaN : 0;
  if (!fault) sites.forEach((site, i) => {
    for (let j = 0; j < m; j++) sum += share[j] * shares[i * m + j] * costs[site * m + j];
  });
  return sum;
}

/**
 * Return all that the page shows of a deployment; `late` is what `lateChances` returns for the threshold, and `near` may
 * be a similar 90th percentile, to begin the search with.
 */
function evaluate(city, sites, scale, queue, late, near) {
  const found = solve(city, sites, scale, queue);
  if (found.fault) return found;
  const {n, m, share, response, twins} = city, {rho, shares} = found, p = sites.length;
  for (const group of new Set(sites.map(site => twins[site]))) {  // twins share their work equally
    const units = [...sites.keys()].filter(i => twins[sites[i]] === group);
    if (units.length === 1) continue;
    const average = (values, width, at) => {
      const mean = units.reduce((sum, i) => sum + values[i * width + at], 0) / units.length;
      for (const i of units) values[i * width + at] = mean;
    };
    average(rho, 1, 0);
    for (let j = 0; j < m; j++) average(shares, m, j);
  }
  const atomResponse = new Float64Array(m), atomLate = new Float64Array(m), unitShares = new Float64Array(p);
  const pairs = [], weights = [];  // pairs of site and atom with a share that matters, as in Evaluation
  sites.forEach((site, i) => {
    for (let j = 0; j < m; j++) {
      const part = shares[i * m + j], k = site * m + j;
      atomResponse[j] += part * response[k];
      atomLate[j] += part * late[k];
      unitShares[i] += part * share[j];
      if (part * share[j] > (city.varies ? 1e-10 : 0)) {
        pairs.push(k);
        weights.push(part * share[j]);
      }
    }
  });
  const all = weights.reduce((a, b) => a + b), dot = values => values.reduce((sum, value, j) => sum + value * share[j], 0);
  let worst = -1;
  // At first, a comparison with undefined is false.
  for (let j = 0; j < m; j++) if (share[j] > 0 && !(atomResponse[j] <= atomResponse[worst])) worst = j;
  return {...found, atomResponse, atomLate, unitShares, worst, meanResponse: dot(atomResponse),
    lateShare: pairs.reduce((sum, k, q) => sum + weights[q] * late[k], 0) / all, percentile90: percentile(city, pairs, weights, all, 0.9, near)};
}

/**
 * Return the best deployment with one unit relocated, added or removed ("move", "add", "remove"), its value, and the
 * sites of the change. A site may hold `most` units, and one that holds more keeps them.
 */
function bestChange(city, sites, scale, queue, costs, kind, most) {
  const alone = [...new Set(sites)], held = site => sites.filter(other => other === site).length;
  const room = [...Array(city.n).keys()].filter(site => held(site) < most);
  const changes = kind === "add" ? room.map(to => [null, to]) : kind === "remove" ? alone.map(from => [from, null])
    : alone.flatMap(from => room.filter(to => city.twins[to] !== city.twins[from]).map(to => [from, to]));
  let best = null;
  for (const [from, to] of changes) {
    const changed = replaced(sites, from, to), value = changed.length ? meanCost(city, changed, scale, queue, costs) : NaN;
    if (value < (best?.value ?? Infinity)) best = {sites: changed, value, from, to};
  }
  return best;
}

/** Return sites with one unit taken from a site and one put at another, either of which may be null. */
function replaced(sites, from, to) {
  const left = sites.filter((_, k) => k !== sites.indexOf(from));  // of null it is -1, and no unit is left out
  return (to === null ? left : [...left, to]).sort((a, b) => a - b);
}

// -- how response times vary ----------------------------------------------------------------------------------------

/** The complementary error function, by Taylor's series from the nearest of many points where it is known. */
const erfc = (() => {
  const perUnit = 64, reach = 6.5, terms = 7, table = new Float64Array((2 * reach * perUnit + 1) * terms);
  for (let q = 0; q * terms < table.length; q++) {
    const x = q / perUnit - reach, slope = -2 / Math.sqrt(Math.PI) * Math.exp(-x * x);
    let term = Math.abs(x), erf = 0;  // erf(x) = 2 / √π e^(-x²) Σ 2^n x^(2n + 1) / (1 · 3 · ... (2n + 1))
    for (let n = 1; term > 1e-18 * erf; n++) {
      erf += term;
      term *= 2 * x * x / (2 * n + 1);
    }
    table[q * terms] = 1 + Math.sign(x) * erf * slope;
    for (let n = 0, a = slope, last = 0; n < terms - 1; n++) {
      table[q * terms + n + 1] = a / (n + 1);
      [a, last] = [-2 * (x * a + last) / (n + 1), a];
    }
  }
  return x => {
    if (x >= reach) return 0;
    if (x <= -reach) return 2;
    const q = (x + reach) * perUnit + 0.5 | 0, d = x + reach - q / perUnit, first = q * terms;
    let sum = 0;
    for (let k = first + terms - 1; k >= first; k--) sum = sum * d + table[k];
    return sum;
  };
})();

/** Return the probability that a lognormal time is at least x, whose logarithm is given too. */
function tail(x, logX, mean, logMean, spread) {
  if (x <= 0) return 1;
  if (spread === 0 || mean === 0) return mean >= x ? 1 : 0;
  return erfc((logX - logMean + spread * spread / 2) / spread * Math.SQRT1_2) / 2;
}

/** Return a function that gives, for a pair of site and atom, the probability of a response of t minutes or more. */
function lateness(city, t) {
  const {m, nodes, weights, turnout, travel, turnoutSpread, travelSpread} = city, reach = 5.5;
  const [x, logs, density] = [0, 1, 2].map(() => new Float64Array(nodes.length));
  let lastMean = NaN, lastSpread = NaN, beyond = 0;
  /** The nodes of the quadrature over the narrower time depend only on its law, which many pairs share. */
  const prepare = (a, s) => {
    if (a === lastMean && s === lastSpread) return;
    [lastMean, lastSpread] = [a, s];
    const end = Math.min(Math.max((Math.log(t / a) + s * s / 2) / s, -reach), reach);
    beyond = erfc(end * Math.SQRT1_2) / 2;
    for (let k = 0; k < x.length; k++) {
      const z = (end + reach) * (1 + nodes[k]) / 2 - reach;
      density[k] = weights[k] * (end + reach) / 2 * Math.exp(-z * z / 2) / Math.sqrt(2 * Math.PI);
      x[k] = t - a * Math.exp(s * z - s * s / 2);
      logs[k] = Math.log(x[k]);
    }
  };
  return pair => {
    const i = Math.floor(pair / m);
    let a = turnout[i], s = turnoutSpread[i], b = travel[pair], wide = travelSpread[pair];
    if (s === 0 && wide === 0) return a + b >= t ? 1 : 0;
    // The narrower of the two times is integrated over, which is easier.
    if (a * Math.exp(-s * s / 2) * s > b * Math.exp(-wide * wide / 2) * wide) [a, s, b, wide] = [b, wide, a, s];
    const logB = Math.log(b);
    if (s * a === 0 || t <= 0) return tail(t - a, Math.log(t - a), b, logB, wide);
    prepare(a, s);
    let late = beyond;
    for (let k = 0; k < x.length; k++) late += density[k] * tail(x[k], logs[k], b, logB, wide);
    return Math.min(late, 1);
  };
}

/** Return the probability of a response of `threshold` minutes or more for each site and atom, (N, M). */
function lateChances(city, threshold) {
  const chance = lateness(city, threshold);
  return city.travel.map((_, pair) => chance(pair));
}

/** Return the smallest response time that a share q of the answered calls, spread over pairs by weight, do not exceed. */
function percentile(city, pairs, weights, all, q, near) {
  const {response} = city;
  if (!city.varies) {
    const order = [...pairs.keys()].sort((a, b) => response[pairs[a]] - response[pairs[b]]);
    let sum = 0;
    for (const k of order) if ((sum += weights[k] / all) >= q) return response[pairs[k]];
    return response[pairs[order.at(-1)]];
  }
  const excess = t => {  // share of later calls, beyond 1 - q
    const chance = lateness(city, t);
    let late = 0;
    for (let k = 0; k < pairs.length; k++) late += weights[k] * chance(pairs[k]);
    return late / all - 1 + q;
  };
  if (near > 0) {  // by the secant rule, which needs few values close to the percentile
    let a = near, b = 1.003 * near, atA = excess(a), atB = excess(b);
    for (let step = 0; step < 6; step++) {
      const next = b - atB * (b - a) / (atB - atA);
      if (!(next > 0)) break;
      if (Math.abs(next - b) < 1e-6 && Math.abs(b - a) < 0.01) return next;
      [a, atA, b, atB] = [b, atB, next, excess(next)];
    }
  }
  let low = 0, high = 16, above = excess(low), below = excess(high);
  while (below > 0) [low, above, high, below] = [high, below, 2 * high, excess(2 * high)];
  if (above <= 0) [low, above] = [0, q];
  for (let side = 0; high - low > 1e-10;) {  // Illinois' rule: halve the value at an end that was kept twice
    const t = (low * below - high * above) / (below - above), found = excess(t);
    if (Math.abs(found) < 1e-13) return t;
    if (found > 0) [low, above, below, side] = [t, found, side > 0 ? below / 2 : below, 1];
    else [high, below, above, side] = [t, found, side < 0 ? above / 2 : above, -1];
  }
  return high;
}
