"use strict";

// The page of `fmnes watch`: requests /data every second and draws it.

const PHASES = { 1: "moving", 2: "adapting", 3: "converging" };
const CHARTS = [
  { id: "objective", title: "Objective", log: true, shift: true, curves: {
    best: "best so far", generation_best: "best of the generation", median: "median" } },
  { id: "steps", title: "Step size", log: true, curves: {
    sigma: "sigma", deviation_max: "largest deviation", deviation_min: "smallest" } },
  { id: "shape", title: "Condition", log: true, curves: {
    condition: "of the covariance", norm_v: "|v|" } },
  { id: "times", title: "Evaluation time", log: true, curves: {
    evaluation: "seconds per evaluation" } },
  { id: "failures", title: "Failures", log: false, curves: { nfailed: "failed evaluations so far" } },
];
const SIZE = { width: 560, height: 230, left: 58, right: 12, top: 8, bottom: 24 };

const byId = (id) => document.getElementById(id);

function write(id, text) {
  byId(id).textContent = text;
}

// === Numbers ===

function short(value, digits = 4) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (value !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(digits - 1);
  return String(Number(value.toPrecision(digits)));
}

function grouped(value) {
  return Math.round(value).toLocaleString("en");
}

function variables(count) {
  return count === 1 ? "1 variable" : `${grouped(count)} variables`;
}

function clock(seconds) {
  const s = Math.round(seconds), two = (n) => String(n).padStart(2, "0");
  return `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
}

// Positions of ticks between two values: powers of ten, or round steps.
function ticks(low, high, log) {
  if (log && high - low < 1) return ticks(10 ** low, 10 ** high, false).map(Math.log10);
  if (log) {
    const step = Math.max(1, Math.ceil((high - low) / 6)), found = [];
    for (let k = Math.ceil(low / step) * step; k <= high; k += step) found.push(k);
    return found;
  }
  const raw = (high - low) / 4, power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((m) => m * power >= raw), found = [];
  for (let k = Math.ceil(low / step) * step; k <= high + step / 1e6; k += step) found.push(k);
  return found;
}

// === Charts ===

function element(parent, name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return parent.appendChild(made);
}

function create(chart) {
  const box = document.createElement("figure");
  box.className = "chart";
  box.id = chart.id;
  box.innerHTML = "<h2></h2><span class=legend></span>";
  box.querySelector("h2").textContent = chart.title;
  chart.svg = element(box, "svg", {
    viewBox: `0 0 ${SIZE.width} ${SIZE.height}`, preserveAspectRatio: "none", role: "img",
    "aria-label": chart.title });
  chart.tip = document.createElement("div");
  chart.tip.className = "tip";
  chart.tip.hidden = true;
  box.append(chart.tip);
  chart.box = box;
  chart.svg.addEventListener("pointermove", (event) => point(chart, event));
  chart.svg.addEventListener("pointerleave", () => { chart.tip.hidden = true; draw(chart); });
  byId("charts").append(box);
}

// What can be drawn of a column: numbers, on a log scale those above `offset`.
function usable(chart, values, offset) {
  return values.map((v) => {
    if (v === null) return null;
    if (!chart.log) return v;
    return v - offset > 0 ? Math.log10(v - offset) : null;
  });
}

function prepare(chart, curves) {
  chart.x = curves.nfev;
  const values = (name) => curves[name].filter((v) => v !== null);
  const least = Math.min(...Object.keys(chart.curves).flatMap(values), Infinity);
  // Values that are not all positive are shown by their distance to the best one.
  chart.offset = chart.shift && least <= 0 ? least : 0;
  chart.raw = curves;
  chart.lines = {};
  for (const name of Object.keys(chart.curves)) {
    const line = usable(chart, curves[name], chart.offset);
    if (line.some((v) => v !== null)) chart.lines[name] = line;
  }
}

function draw(chart, cursor) {
  const { svg } = chart, legend = chart.box.querySelector(".legend");
  svg.replaceChildren();
  legend.replaceChildren();
  const width = svg.clientWidth || SIZE.width, { height, left, right, top, bottom } = SIZE;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const all = Object.values(chart.lines ?? {}).flat().filter((v) => v !== null);
  if (!all.length) {
    element(svg, "text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, "nothing yet");
    return;
  }
  let low = Math.min(...all), high = Math.max(...all);
  if (!chart.log) low = Math.min(low, 0);
  if (high - low < 1e-9) [low, high] = chart.log ? [low - 0.5, high + 0.5] : [low, low + 1];
  const end = chart.x[chart.x.length - 1];
  const px = (x) => left + (width - left - right) * (x / end);
  const py = (y) => height - bottom - (height - top - bottom) * ((y - low) / (high - low));
  chart.place = { px, left, right, width };
  for (const y of ticks(low, high, chart.log)) {
    element(svg, "line", { class: "grid", x1: left, x2: width - right, y1: py(y), y2: py(y) });
    const text = chart.log ? short(10 ** y, 2) : short(y);
    element(svg, "text", { x: left - 6, y: py(y) + 4, "text-anchor": "end" }, text);
  }
  for (const x of ticks(0, end, false)) {
    if (px(x) > width - 140) continue;  // room for the last one, with the name of the axis
    element(svg, "text", { x: px(x), y: height - 6, "text-anchor": "middle" }, grouped(x));
  }
  const unit = `${grouped(end)} evaluations`;
  element(svg, "text", { x: width - right, y: height - 6, "text-anchor": "end" }, unit);
  element(svg, "line", {
    class: "axis", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom });
  let curves = null;
  Object.keys(chart.curves).forEach((name, k) => {
    if (!chart.lines[name]) return;
    let path = "", open = false;
    chart.lines[name].forEach((y, i) => {
      // h0: a point between two gaps shows as a dot.
      const place = `${px(chart.x[i]).toFixed(1)},${py(y ?? 0).toFixed(1)}`;
      if (y !== null) path += open ? `L${place}` : `M${place}h0`;
      open = y !== null;
    });
    const curve = element(svg, "path", { class: `curve c${k}`, d: path });
    svg.insertBefore(curve, curves);  // the first one on top
    curves = curve;
    const entry = legend.appendChild(document.createElement("span"));
    entry.appendChild(document.createElement("i")).className = `c${k}`;
    const shift = chart.offset ? ` − (${short(chart.offset)})` : "";
    entry.append(chart.curves[name] + (k === 0 ? shift : ""));
  });
  if (cursor !== undefined) {
    const x = px(chart.x[cursor]);
    element(svg, "line", { class: "cursor", x1: x, x2: x, y1: top, y2: height - bottom });
  }
}

function point(chart, event) {
  if (!chart.place || !chart.x.length) return;
  const x = event.clientX - chart.svg.getBoundingClientRect().left;
  let nearest = 0;
  chart.x.forEach((v, i) => {
    if (Math.abs(chart.place.px(v) - x) < Math.abs(chart.place.px(chart.x[nearest]) - x)) nearest = i;
  });
  draw(chart, nearest);
  const names = Object.keys(chart.lines);
  chart.tip.textContent = [`${grouped(chart.x[nearest])} evaluations`,
    ...names.map((name) => `${chart.curves[name]}  ${short(chart.raw[name][nearest], 6)}`)].join("\n");
  chart.tip.hidden = false;
  const isRight = x > chart.place.width / 2;
  chart.tip.style.left = isRight ? "" : `${x + 24}px`;
  chart.tip.style.right = isRight ? `${chart.place.width - x + 24}px` : "";
}

// === The page ===

function showTiles(data) {
  const { last } = data;
  write("best", short(last.best, 6));
  write("nfev", last.nfev === null ? "–" : grouped(last.nfev));
  write("budget", data.maxfevals ? `of ${grouped(data.maxfevals)}` : "");
  write("sigma", short(last.sigma));
  write("condition", short(last.condition));
  write("phase", PHASES[last.phase] ?? "–");
  write("rate", short(data.rate, 3));
  byId("left").parentElement.hidden = data.state !== "running";  // no time is left of a run that ended
  write("left", data.maxfevals && data.rate ? clock((data.maxfevals - last.nfev) / data.rate) : "–");
  write("nfailed", last.nfailed === null ? "–" : grouped(last.nfailed));
  byId("nfailed").parentElement.classList.toggle("bad", last.nfailed > 0);
}

function showCandidate({ x, named, dim }) {
  const rows = named ?? x?.map((value, i) => [`x[${i}]`, value]) ?? [];
  byId("candidate").hidden = !rows.length;
  const first = rows.slice(0, 8);
  const head = first.map(([name, value]) => (named ? `${name} = ${value}` : short(value, 5))).join(", ");
  write("candidate-head", `${head}${dim > 8 ? ", …" : ""} (${variables(dim)})`);
  const file = named ? "best.json" : "best.txt";
  const more = dim > rows.length ? [`… the other ${grouped(dim - rows.length)} are in ${file}`] : [];
  write("candidate-all", [...rows.map(([name, value]) => `${name} = ${value}`), ...more].join("\n"));
}

function show(data) {
  const title = data.title ?? "fmnes";
  write("title", title);
  document.title = `${short(data.last.best, 4)} · ${title}`;
  write("about", data.method ? `${data.method}, ${variables(data.dim)}, ${data.folder}` : "");
  write("state", data.state === "ended" ? `ended: ${data.status}` : data.state);
  byId("state").dataset.state = data.state;
  write("message", data.message);
  showTiles(data);
  showCandidate(data);
  for (const chart of CHARTS) {
    prepare(chart, data.curves);
    if (chart.tip.hidden) draw(chart);
  }
  byId("failure").hidden = !data.error;
  if (data.error) {
    write("failure-last", data.error.trim().split("\n").pop());
    write("failure-all", data.error);
  }
}

async function follow() {
  try {
    show(await (await fetch("data", { cache: "no-store" })).json());
  } catch (error) {
    byId("state").dataset.state = "lost";
    write("state", "no answer");
    write("message", `fmnes watch does not answer (${error.message}); these are its last data.`);
  }
  setTimeout(follow, 1000);
}

CHARTS.forEach(create);
addEventListener("resize", () => CHARTS.forEach((chart) => draw(chart)));
follow();
