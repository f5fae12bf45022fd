"use strict";
// The threshold explorer draws both curves of one confidence and reports the outcome of each threshold.
// All text reaches the page as text, never as markup. Nothing is fetched.
(() => {
  // An element that is wider than the screen has a line above it as a sign that it scrolls.
  const scrolling = [...document.querySelectorAll(".scroll, figure.wide")];
  const hints = new Map(scrolling.map((box) => {
    const hint = document.createElement("p");
    hint.className = "hint";
    hint.setAttribute("aria-hidden", "true");
    hint.textContent = "Scroll sideways to see everything \u2192";
    hint.hidden = true;
    box.before(hint);
    return [box, hint];
  }));
  const check = () => hints.forEach((hint, box) => { hint.hidden = box.scrollWidth <= box.clientWidth + 1; });
  const observer = new ResizeObserver(check);
  scrolling.forEach((box) => observer.observe(box));
  check();
})();
(() => {
  const data = JSON.parse(document.getElementById("explorer-data").textContent);
  const form = document.getElementById("explorer");
  if (!form || !data || !data.curves.length) return;
  const byId = (id) => document.getElementById(id);
  const SVG = "http://www.w3.org/2000/svg";
  const MARGIN = { left: 46, right: 10, top: 10, bottom: 40 };
  const HEIGHT = 290;
  const EARLY = 0.05; // below this coverage the risk is that of a handful of items, and the axis need not include it
  const MANY = 60; // a curve with more points than this is drawn without dots
  const picker = byId("pick-confidence"), slider = byId("pick-point");
  const costs = { wrong: byId("cost-wrong"), deferral: byId("cost-deferral") };
  const plots = [
    { box: byId("plot-selective"), risk: "r", low: "rl", high: "rh", name: "Selective risk" },
    { box: byId("plot-generalized"), risk: "g", low: "gl", high: "gh", name: "Generalized risk" },
  ];
  let curve = data.curves[data.start], here = 0, cheapest = -1;

  // ---- words ----
  const short = (x) => (x === null ? "undefined" : Number(x.toPrecision(4)).toString());
  const three = (x) => x.toFixed(3);
  const percent = (x) => `${(100 * x).toFixed(1)}%`;
  const grouped = (x) => x.toLocaleString("en-US");
  const counted = (x, what) => `${grouped(x)} ${what}${x === 1 ? "" : "s"}`;
  // A loss that is a proportion is printed in percent, like coverage; any other loss as a number.
  const proportion = () => ["zero_one", "abs_norm"].includes(data.sides[curve.side].loss);
  const binary = () => data.sides[curve.side].loss === "zero_one";
  const scaled = () => (proportion() ? 100 : 1);
  const risk = (x) => (proportion() ? percent(x) : three(x));
  const interval = (low, high) => (low === null ? "" : ` [${risk(low)}, ${risk(high)}]`);
  const coverage = (i) => curve.k[i] / curve.n;
  const outcome = (i) => `${grouped(curve.k[i])} answered, ${grouped(curve.w[i])} wrong, ${grouped(curve.n - curve.k[i])} deferred`;

  // ---- finding an operating point: the first that reaches a coverage, the last within a risk, the last above a threshold ----
  const last = () => curve.k.length - 1;
  const atCoverage = (requested) => {
    const found = curve.k.findIndex((k) => k / curve.n >= requested - 1e-9);
    return found < 0 ? [last(), `no threshold reaches ${percent(requested)}, because the model declines the rest; this point has the largest coverage`] : [found, ""];
  };
  const atRisk = (requested) => {
    let found = -1;
    curve.r.forEach((observed, i) => { if (observed <= requested + 1e-12) found = i; });
    if (found >= 0) return [found, ""];
    const lowest = curve.r.indexOf(Math.min(...curve.r));
    return [lowest, `no threshold has an observed risk of ${proportion() ? short(100 * requested) + "%" : short(requested)} or less; this point has the lowest risk`];
  };
  // The guarantee for the largest tested risk that is at most the requested one.
  const atGuarantee = (requested) => {
    const kept = curve.p.filter(([one]) => one <= requested + 1e-12);
    if (!kept.length) return [here, `no threshold has a guaranteed risk of ${short(100 * requested)}% or less with these data; the point was not changed`];
    const [tested, point] = kept[kept.length - 1];
    const guaranteed = `${form.dataset.sure} sure, the risk at this point is at most ${short(100 * tested)}%`;
    return [point, Math.abs(tested - requested) < 1e-12 ? guaranteed : `${guaranteed}, the largest tested risk up to ${short(100 * requested)}%`];
  };
  const atThreshold = (requested) => {
    let found = -1;
    curve.t.forEach((threshold, i) => { if (threshold >= requested) found = i; });
    return found < 0 ? [0, `no answer has a confidence of ${short(requested)} or more, so that everything would be deferred; this is the highest threshold`] : [found, ""];
  };
  const nearest = (requested) => {
    let found = 0;
    for (let i = 1; i <= last(); i += 1) if (Math.abs(coverage(i) - requested) < Math.abs(coverage(found) - requested)) found = i;
    return found;
  };

  // ---- drawing ----
  const element = (parent, name, attributes, text) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent.appendChild(made);
    return made;
  };
  const niceStep = (top) => {
    const rough = top / 5, size = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 5, 10].map((m) => m * size).find((step) => step >= rough);
  };
  const topOf = (plot) => {
    const settled = Math.min(EARLY, coverage(last()));
    const values = [plot.risk === "r" ? data.sides[curve.side].mean : data.sides[curve.side].mean * coverage(last())];
    curve[plot.risk].forEach((value, i) => { if (coverage(i) >= settled) values.push(value, curve[plot.high][i] ?? 0); });
    return 1.08 * Math.max(...values) || 1;
  };
  const draw = (plot) => {
    const width = Math.max(plot.box.clientWidth, 240), side = data.sides[curve.side];
    const inner = { width: width - MARGIN.left - MARGIN.right, height: HEIGHT - MARGIN.top - MARGIN.bottom };
    const top = topOf(plot), step = niceStep(top);
    const x = (c) => MARGIN.left + c * inner.width;
    const y = (v) => MARGIN.top + (1 - Math.min(v, top) / top) * inner.height;
    plot.x = x; plot.y = y; plot.inner = inner;
    plot.box.replaceChildren();
    const svg = element(plot.box, "svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": `${plot.name} over coverage for ${curve.key}; the slider below moves along it` });
    const path = (xs, ys) => xs.map((c, i) => `${i ? "L" : "M"}${x(c).toFixed(1)},${y(ys[i]).toFixed(1)}`).join("");
    for (let value = 0; value <= top; value += step) {
      element(svg, "line", { class: "grid", x1: x(0), x2: x(1), y1: y(value), y2: y(value) });
      element(svg, "text", { x: x(0) - 7, y: y(value) + 4, "text-anchor": "end" }, proportion() ? `${short(100 * Number(value.toPrecision(6)))}%` : short(Number(value.toPrecision(6))));
    }
    for (let tick = 0; tick <= 5; tick += 1) {
      element(svg, "line", { class: "axis", x1: x(tick / 5), x2: x(tick / 5), y1: y(0), y2: y(0) + 5 });
      element(svg, "text", { x: x(tick / 5), y: y(0) + 18, "text-anchor": tick === 5 ? "end" : "middle" }, `${20 * tick}%`);
    }
    element(svg, "text", { x: x(0.5), y: HEIGHT - 5, "text-anchor": "middle" }, "coverage: proportion of items answered");
    const cmax = coverage(last());
    if (cmax < 1) element(svg, "rect", { class: "declined", x: x(cmax), y: MARGIN.top, width: x(1) - x(cmax), height: inner.height });
    const covers = curve.k.map((k) => k / curve.n);
    if (curve[plot.low][0] !== null || curve[plot.low][last()] !== null) {
      const kept = covers.map((_, i) => i).filter((i) => curve[plot.low][i] !== null);
      const upper = path(kept.map((i) => covers[i]), kept.map((i) => curve[plot.high][i]));
      const lower = path(kept.map((i) => covers[i]).reverse(), kept.map((i) => curve[plot.low][i]).reverse());
      element(svg, "path", { class: "band", d: `${upper}L${lower.slice(1)}Z` });
    }
    element(svg, "path", { class: "random", d: plot.risk === "r" ? path([0, cmax], [side.mean, side.mean]) : path([0, cmax], [0, side.mean * cmax]) });
    element(svg, "path", { class: "optimal", d: path(side.optimal.c, side.optimal[plot.risk]) });
    const line = curve.line || { c: covers, r: curve.r, g: curve.g };
    element(svg, "path", { class: "curve", d: path(line.c, line[plot.risk]) });
    if (covers.length <= MANY) covers.forEach((c, i) => element(svg, "circle", { class: "dot", cx: x(c), cy: y(curve[plot.risk][i]), r: 3 }));
    for (const point of new Set(curve.p.map(([, place]) => place))) {
      const px = x(covers[point]), py = y(curve[plot.risk][point]);
      const mark = element(svg, "path", { class: "guaranteed", d: `M${px},${py - 6}L${px + 5},${py + 4}L${px - 5},${py + 4}Z` });
      const risks = curve.p.filter(([, place]) => place === point).map(([one]) => `${short(100 * one)}%`);
      element(mark, "title", {}, `guaranteed risk of at most ${risks[0]}, ${form.dataset.sure} sure`);
    }
    element(svg, "line", { class: "axis", x1: x(0), x2: x(1), y1: y(0), y2: y(0) });
    plot.rule = element(svg, "line", { class: "rule", y1: MARGIN.top, y2: y(0) });
    plot.whisker = element(svg, "line", { class: "whisker" });
    plot.cheap = element(svg, "path", { class: "cheap" });
    plot.here = element(svg, "circle", { class: "here", r: 6 });
    mark(plot);
  };
  const mark = (plot) => {
    if (!plot.here) return;
    const cx = plot.x(coverage(here));
    plot.rule.setAttribute("x1", cx); plot.rule.setAttribute("x2", cx);
    plot.here.setAttribute("cx", cx); plot.here.setAttribute("cy", plot.y(curve[plot.risk][here]));
    const low = curve[plot.low][here];
    plot.whisker.setAttribute("visibility", low === null ? "hidden" : "visible");
    if (low !== null) for (const [name, value] of [["x1", cx], ["x2", cx], ["y1", plot.y(low)], ["y2", plot.y(curve[plot.high][here])]]) plot.whisker.setAttribute(name, value);
    plot.cheap.setAttribute("visibility", cheapest < 0 ? "hidden" : "visible");
    if (cheapest >= 0) {
      const px = plot.x(coverage(cheapest)), py = plot.y(curve[plot.risk][cheapest]);
      plot.cheap.setAttribute("d", `M${px},${py - 7}L${px + 7},${py}L${px},${py + 7}L${px - 7},${py}Z`);
    }
  };

  // ---- the meaning of a point ----
  const price = (name) => { const value = Number(costs[name].value); return costs[name].value !== "" && value >= 0 && Number.isFinite(value) ? value : null; };
  const priced = () => {
    const wrong = price("wrong"), deferral = price("deferral");
    cheapest = -1;
    byId("go-cheapest").disabled = true;
    if (wrong === null || deferral === null) { byId("cheapest").textContent = "Enter two costs of 0 or more to see the cheapest point."; return; }
    const total = (i) => wrong * curve.w[i] + deferral * (curve.n - curve.k[i]);
    let best = 0;
    for (let i = 1; i <= last(); i += 1) if (total(i) <= total(best)) best = i;
    const none = deferral * curve.n, prices = `With ${short(wrong)} for a wrong answer and ${short(deferral)} for a deferral, `;
    if (none < total(best)) {
      byId("cheapest").textContent = `${prices}deferring everything is cheapest: it costs ${short(none)}, any threshold at least ${short(total(best))}.`;
      return;
    }
    cheapest = best;
    byId("go-cheapest").disabled = false;
    const thinned = curve.whole > curve.k.length ? ` (of the ${grouped(curve.k.length)} points shown here)` : "";
    byId("cheapest").textContent = `${prices}the cheapest point${thinned} is at a confidence of ${short(curve.t[best])}: ${outcome(best)}, ` +
      `for ${short(total(best))} in total. Your point costs ${short(total(here))}, deferring everything ${short(none)}.`;
  };
  const remember = () => {
    const state = new URLSearchParams({ confidence: curve.key, threshold: String(curve.t[here]), wrong: costs.wrong.value, deferral: costs.deferral.value });
    try { history.replaceState(null, "", `#${state}`); } catch (problem) { /* some viewers have no address */ }
  };
  // The edited field keeps its value; the other fields follow the point.
  const fill = (id, value, edited) => { if (byId(id) && id !== edited) byId(id).value = value; };
  const show = (point, remark = "", keep = true, edited = "") => {
    here = point;
    const exactly = `At a confidence of at least ${short(curve.t[here])}, of ${counted(curve.n, "item")}: ${outcome(here)}.`;
    byId("sentence").textContent = exactly;
    const wrong = binary() ? "" : ` Wrong: ${percent(curve.w[here] / curve.k[here])} of the answers.`;
    byId("risks").textContent = `Risk of the answers ${risk(curve.r[here])}${interval(curve.rl[here], curve.rh[here])}, ` +
      `per item ${risk(curve.g[here])}${interval(curve.gl[here], curve.gh[here])}, at a coverage of ${percent(coverage(here))}.${wrong}`;
    const sure = curve.p.find(([, place]) => place === here);
    byId("guarantee").textContent = sure ? `Guaranteed, ${form.dataset.sure} sure: the risk at this point is at most ${short(100 * sure[0])}%.` : "";
    byId("remark").textContent = remark && `${remark[0].toUpperCase()}${remark.slice(1)}.`;
    slider.value = String(here);
    slider.setAttribute("aria-valuetext", `coverage ${percent(coverage(here))}, risk ${risk(curve.r[here])}`);
    fill("pick-coverage", Number((100 * coverage(here)).toFixed(2)), edited);
    fill("pick-risk", Number((scaled() * curve.r[here]).toPrecision(4)), edited);
    fill("pick-threshold", curve.t[here], edited);
    fill("pick-guarantee", sure ? short(100 * sure[0]) : "", edited);
    priced();
    plots.forEach(mark);
    if (keep) remember();
  };
  const choose = (chosen, point) => {
    curve = chosen;
    picker.value = curve.key;
    slider.max = String(last());
    here = Math.min(point ?? nearest(0.5), last());
    priced();
    plots.forEach(draw);
  };
  const restore = () => {
    const state = new URLSearchParams(location.hash.slice(1));
    const chosen = data.curves.find((one) => one.key === state.get("confidence"));
    const stored = (name) => (state.get(name) !== null && state.get(name) !== "" && Number.isFinite(Number(state.get(name))) ? Number(state.get(name)) : null);
    for (const name of Object.keys(costs)) if (stored(name) !== null && stored(name) >= 0) costs[name].value = state.get(name);
    choose(chosen || curve);
    const ways = [["threshold", atThreshold], ["coverage", atCoverage], ["risk", atRisk]];
    const way = ways.find(([name]) => stored(name) !== null);
    const [point, remark] = way ? way[1](stored(way[0])) : [here, ""];
    show(point, remark, false);
  };

  // ---- listening ----
  const listen = (id, find, inPercent = () => false) => byId(id) && byId(id).addEventListener("change", (event) => {
    const value = Number(event.target.value);
    if (event.target.value === "" || !Number.isFinite(value)) { show(here, "this is not a number; nothing was changed"); return; }
    if (inPercent() && (value < 0 || value > 100)) { show(here, `${short(value)}% is not between 0% and 100%; nothing was changed`, true, id); return; }
    const [point, remark] = find(value);
    show(point, remark, true, id);
  });
  listen("pick-coverage", (value) => atCoverage(value / 100), () => true);
  listen("pick-risk", (value) => atRisk(value / scaled()), proportion);
  listen("pick-guarantee", (value) => atGuarantee(value / 100), () => true);
  listen("pick-threshold", atThreshold);
  slider.addEventListener("input", () => show(Number(slider.value)));
  picker.addEventListener("change", () => {
    const kept = coverage(here);
    choose(data.curves[picker.selectedIndex], null);
    show(nearest(kept));
  });
  for (const input of Object.values(costs)) input.addEventListener("input", () => { priced(); plots.forEach(mark); remember(); });
  byId("go-cheapest").addEventListener("click", () => { if (cheapest >= 0) show(cheapest); });
  form.addEventListener("submit", (event) => event.preventDefault());
  for (const plot of plots) {
    const follow = (event) => {
      const box = plot.box.getBoundingClientRect();
      show(nearest((event.clientX - box.left - MARGIN.left) / plot.inner.width));
    };
    plot.box.addEventListener("pointerdown", (event) => { plot.box.setPointerCapture(event.pointerId); follow(event); });
    plot.box.addEventListener("pointermove", (event) => { if (event.buttons & 1) follow(event); });
  }
  window.addEventListener("hashchange", () => { if (location.hash.includes("=")) restore(); });

  for (const one of data.curves) {
    const option = document.createElement("option");
    option.value = one.key;
    option.textContent = one.key;
    picker.appendChild(option);
  }
  for (const still of document.querySelectorAll("#curves .static")) still.hidden = true;
  form.hidden = false;
  restore();
  let drawnAt = plots[0].box.clientWidth;
  new ResizeObserver(() => {
    if (plots[0].box.clientWidth === drawnAt) return;
    drawnAt = plots[0].box.clientWidth;
    plots.forEach(draw);
  }).observe(plots[0].box);
})();
