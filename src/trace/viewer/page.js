// SPDX-License-Identifier: GPL-2.0-only
// The page: what is in sight, what people do, and what is said of it.

const plot = element("plot");
const sight = { from: 0, to: data.span, view: data.views[0], row: 0, cursor: null };
const chosen = { marks: [], hits: null, follow: null };
let pending = false;

const width = () => Math.max(1, plot.clientWidth - GUTTER);
const nsPerPixel = () => (sight.to - sight.from) / width();
const rowHeight = () => Math.max(8, Math.min(36, Math.floor(480 / Math.max(1, lanes.length))));
const plural = (count, one) => `${count.toLocaleString("en")} ${one}${count === 1 ? "" : "s"}`;

function draw() {
  pending = false;
  const ratio = window.devicePixelRatio || 1, height = AXIS + lanes.length * rowHeight();
  plot.style.height = `${height}px`;
  const [w, h] = [Math.round(plot.clientWidth * ratio), Math.round(height * ratio)];
  if (plot.width !== w || plot.height !== h) [plot.width, plot.height] = [w, h];
  const canvas = plot.getContext("2d");
  canvas.setTransform(1, 0, 0, 1, 0, 0);
  canvas.fillStyle = "#fff";
  canvas.fillRect(0, 0, w, h);
  if (!levels.length || !lanes.length) return;
  const left = Math.round(GUTTER * ratio), columns = Math.max(1, w - left);
  const each = (sight.to - sight.from) / columns, level = levelOf(each), paint = PAINT[sight.view.colour];
  const row = new Uint32Array(columns);
  const rowPixels = Math.max(1, Math.round((rowHeight() - 1) * ratio));
  const image = canvas.createImageData(columns, rowPixels);
  const pixels = new Uint32Array(image.data.buffer);
  lanes.forEach((lane, number) => {
    if (level || !isHere(lane, sight.from, sight.to)) paintTiles(row, number, level ?? levels[0], sight.from, each, paint);
    else paintEvents(row, lane, sight.from, each, paint);
    for (let line = 0; line < rowPixels; line++) pixels.set(row, line * columns);
    canvas.putImageData(image, left, Math.round((AXIS + number * rowHeight()) * ratio));
  });
  canvas.setTransform(ratio, 0, 0, ratio, 0, 0);
  canvas.font = "11px system-ui, sans-serif";
  axis(canvas, sight.from, nsPerPixel(), width());
  lanes.forEach((lane, number) => {
    const top = AXIS + number * rowHeight();
    canvas.fillStyle = number === sight.row ? "#1d4ed8" : "#1c2026";
    if (rowHeight() > 9 || number % 4 === 0) canvas.fillText(`CPU ${lane.cpu.id}`, 4, top + rowHeight() / 2);
    if (!level && isHere(lane, sight.from, sight.to)) label(canvas, lane, top, rowHeight() - 1, sight.from, nsPerPixel(), width());
  });
  canvas.save();
  canvas.beginPath();
  canvas.rect(GUTTER, 0, width(), height);
  canvas.clip();
  drawFollowed(canvas, height);
  if (sight.view.colour === "lock") {
    drawWaits(canvas, sight.from, sight.to, (lane, time) => ({ x: GUTTER + (time - sight.from) / nsPerPixel(), y: AXIS + (lane + 0.5) * rowHeight() }));
  }
  drawHits(canvas);
  drawMarks(canvas, height);
  canvas.restore();
}

function drawFollowed(canvas, height) {
  if (!chosen.follow) return;
  canvas.fillStyle = "#ffffffb0";
  canvas.fillRect(GUTTER, AXIS, width(), height);
  const each = nsPerPixel(), rows = rowHeight();
  let before = null;
  canvas.fillStyle = "#b91c1c";
  canvas.strokeStyle = "#b91c1c";
  canvas.beginPath();
  const { runs } = chosen.follow;
  const after = runs.findIndex((run) => run.to > sight.from);
  for (let at = Math.max(0, after - 1); after >= 0 && at < runs.length; at++) {
    const run = runs[at];
    const x = GUTTER + (run.from - sight.from) / each, end = GUTTER + (run.to - sight.from) / each;
    const middle = AXIS + (run.lane + 0.5) * rows;
    // Runs that fall on one pixel are one there.
    if (before && before.lane === run.lane && end < before.end + 0.5) continue;
    canvas.fillRect(x, AXIS + run.lane * rows, Math.max(1, end - x), rows - 1);
    if (before && before.lane !== run.lane) {
      canvas.moveTo(before.end, before.middle);
      canvas.lineTo(x, middle);
    }
    before = { lane: run.lane, end, middle };
    if (run.from > sight.to) break;
  }
  canvas.stroke();
}

function drawHits(canvas) {
  if (!chosen.hits) return;
  canvas.fillStyle = "#000";
  chosen.hits.forEach((times, number) => {
    const top = AXIS + number * rowHeight();
    let last = -1;
    for (let at = above(times, sight.from - 1); at < times.length && times[at] <= sight.to; ) {
      const x = Math.floor((times[at] - sight.from) / nsPerPixel());
      if (x > last) canvas.fillRect(GUTTER + x, top, 1, Math.max(3, rowHeight() / 3));
      last = x;
      at = Math.max(at + 1, above(times, sight.from + (x + 1) * nsPerPixel() - 1e-9));
    }
  });
}

function drawMarks(canvas, height) {
  canvas.strokeStyle = "#111827";
  canvas.fillStyle = "#1d4ed822";
  const [a, b] = chosen.marks.map((time) => GUTTER + (time - sight.from) / nsPerPixel());
  if (b !== undefined) canvas.fillRect(Math.min(a, b), AXIS, Math.abs(b - a), height);
  for (const x of [a, b].filter((one) => one !== undefined)) {
    canvas.beginPath();
    canvas.moveTo(x, 0);
    canvas.lineTo(x, height);
    canvas.stroke();
  }
}

function redraw() {
  if (pending) return;
  pending = true;
  requestAnimationFrame(draw);
}

let saying = 0;

// What is in sight, in words; not while it still changes.
function say() {
  clearTimeout(saying);
  saying = setTimeout(() => {
    if (!levels.length) return;
    const all = lanes.map((lane, number) => sums(number, sight.from, sight.to));
    const time = sight.to - sight.from;
    const mean = (list) => list.reduce((sum, one) => sum + one, 0) / Math.max(1, list.length);
    const fast = (one) => (one.known > 0 ? Math.round((100 * one.speed) / one.known / data.full) : null);
    const speeds = all.map(fast).filter((one) => one !== null);
    const part = (share) => `${Math.round(100 * share)}%`;
    element("summary").textContent =
      `In sight: ${showPlace(sight.from, time)} to ${showPlace(sight.to, time)}, ${showTime(time)} of ${plural(lanes.length, "CPU")}; ` +
      `${part(mean(all.map((one) => one.busy / time)))} busy, ` +
      (speeds.length ? `${Math.round(mean(speeds))}% of full speed on average, ` : "speeds not known, ") +
      `${Math.max(0, ...all.map((one) => one.queue))} waited at most.`;
    const rows = all.map((one, number) => {
      const row = document.createElement("tr");
      const cells = [lanes[number].cpu.id, part(one.busy / time), fast(one) === null ? "not known" : `${fast(one)}%`, one.queue];
      for (const text of cells) row.appendChild(document.createElement("td")).textContent = text;
      return row;
    });
    element("cpus").replaceChildren(...rows);
    plot.setAttribute("aria-label", `CPUs over time, coloured by ${sight.view.title.toLowerCase()}`);
    sightSettled();
  }, 150);
}

function show(from, to) {
  const least = 20;
  const span = Math.min(Math.max(to - from, least), data.span);
  sight.from = Math.min(Math.max(0, from), data.span - span);
  sight.to = sight.from + span;
  redraw();
  say();
}

function zoom(factor, at) {
  const centre = at ?? (sight.from + sight.to) / 2;
  show(centre - (centre - sight.from) * factor, centre + (sight.to - centre) * factor);
}

const pan = (share) => show(sight.from + (sight.to - sight.from) * share, sight.to + (sight.to - sight.from) * share);

// Where the pointer is: a time and a CPU, if it is over one.
function place(event) {
  const box = plot.getBoundingClientRect();
  const [x, y] = [event.clientX - box.left - GUTTER, event.clientY - box.top - AXIS];
  const number = Math.floor(y / rowHeight());
  const isOn = x >= 0 && x <= width() && number >= 0 && number < lanes.length;
  return { time: sight.from + x * nsPerPixel(), number: isOn ? number : -1 };
}

const ABOUT = {
  fork: (low, high) => `by PID ${low}, of process ${high}`,
  exec: (low) => `PID ${low} before`,
  wakeup: (low, high) => `for CPU ${high}, PID ${low} ran`,
  "wakeup-new": (low, high) => `for CPU ${high}, PID ${low} ran`,
  switch: (low, high) => `from PID ${low}, state ${high}`,
  migrate: (low, high) => `from CPU ${high} to CPU ${low}`,
  idle: (low) => `state ${low}`,
  frequency: (low) => `${low} kHz`,
  tick: (low) => `speed ${low} of 1024`,
  place: (low) => `on CPU ${low}`,
  "lock-wait": (low) => `lock ${low}`,
  "lock-hold": (low) => `lock ${low}`,
  handoff: (low, high) => `lock ${low}, given by PID ${high}`,
  "lock-left": (low) => `lock ${low}`,
  inversion: (low, high) => `${high} us, PID ${low} held the lock`,
};

// What the CPU does at a time, in lines.
function describe(number, time) {
  const lane = lanes[number], each = nsPerPixel(), level = levelOf(each);
  const lines = [`CPU ${lane.cpu.id} at ${showPlace(time, sight.to - sight.from)}`];
  if (level || !isHere(lane, sight.from, sight.to)) {
    const { width: ns, ...tiles } = level ?? levels[0];
    const at = number * tiles.tiles + Math.min(tiles.tiles - 1, Math.floor(time / ns));
    lines.push(`most of ${showTime(ns)}: ${taskName(tiles.task[at])}`, `${Math.round(tiles.busy[at] / 2.55)}% busy, ${plural(tiles.events[at], "event")}`);
    lines.push(`${showSpeed(tiles.mean[at])} on average, lowest ${showSpeed(tiles.low[at])}, highest ${showSpeed(tiles.high[at])}`);
    lines.push(`${tiles.queue[at]} waited at most`, ...chainsAt(number, time));
    return lines;
  }
  const span = Math.max(0, above(lane.start, time) - 1), queue = above(lane.queueTime, time) - 1;
  // It ran on while its speed changed.
  let [first, end] = [span, span + 1];
  while (first > 0 && lane.running[first - 1] === lane.running[span]) first--;
  while (end < lane.start.length && lane.running[end] === lane.running[span]) end++;
  const until = end < lane.start.length ? lane.start[end] : lane.to;
  lines.push(`${taskName(lane.running[span])} for ${showTime(until - lane.start[first])}`);
  lines.push(showSpeed(lane.speed[span]), `${queue < 0 ? 0 : lane.waiting[queue]} wait`, ...chainsAt(number, time));
  const last = above(lane.time, time + 4 * each);
  for (let at = Math.max(above(lane.time, time - 4 * each), last - 6); at < last; at++) {
    const kind = kindName(lane.kind[at]);
    const about = ABOUT[kind]?.(lane.low[at], lane.high[at]) ?? "";
    lines.push(`${showPlace(lane.time[at], sight.to - sight.from)} ${kind} ${lane.task[at] > UNKNOWN ? taskName(lane.task[at]) : ""} ${about}`.trimEnd());
  }
  return lines;
}

function hover(event) {
  const { time, number } = place(event), tip = element("tip");
  sight.cursor = number < 0 ? null : time;
  tip.hidden = number < 0 || !levels.length || time > data.span;
  if (tip.hidden) return;
  tip.textContent = describe(number, time).join("\n");
  tip.style.left = `${Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8)}px`;
  tip.style.top = `${Math.min(event.clientY + 14, window.innerHeight - tip.offsetHeight - 8)}px`;
}

// Who runs there at that time.
function follow(number, time) {
  const lane = lanes[number];
  if (lane && isHere(lane, time, time)) followTask(lane.running[Math.max(0, above(lane.start, time) - 1)]);
}

// Where a task ran, by its PID: under all of its names.
function followTask(task) {
  chosen.follow = null;
  if (task > UNKNOWN) {
    const pid = data.tasks[task][0], runs = [];
    const is = Uint8Array.from(data.tasks, ([one], at) => (at > UNKNOWN && one === pid ? 1 : 0));
    lanes.forEach(({ running, start, to: end }, on) => {
      for (let span = 0; span < start.length; span++) {
        if (is[running[span]] !== 1) continue;
        const to = span + 1 < start.length ? start[span + 1] : end;
        const last = runs.at(-1);
        if (last?.lane === on && last.to === start[span]) last.to = to;
        else runs.push({ lane: on, from: start[span], to });
      }
    });
    runs.sort((a, b) => a.from - b.from);
    const ns = runs.reduce((sum, run) => sum + run.to - run.from, 0);
    const moves = runs.filter((run, at) => at > 0 && runs[at - 1].lane !== run.lane).length;
    const cpus = [...new Set(runs.map((run) => lanes[run.lane].cpu.id))].sort((a, b) => a - b);
    chosen.follow = { task, runs };
    element("follow").textContent = `Following ${taskName(task)}: ran ${showTime(ns)} in ${plural(runs.length, "run")}, ` +
      `went to another CPU ${plural(moves, "time")}; CPUs ${cpus.join(", ")}${WHERE}.`;
  } else {
    element("follow").textContent = "";
  }
  redraw();
}

function mark(time) {
  if (chosen.marks.length === 2) chosen.marks = [];
  chosen.marks.push(Math.min(Math.max(0, time), data.span));
  const [a, b] = [...chosen.marks].sort((one, other) => one - other);
  let text = `A point at ${showPlace(a, sight.to - sight.from)}: set another one for the time between.`;
  if (b !== undefined) {
    const counts = new Map();
    for (const lane of lanes.filter((one) => isHere(one, a, b))) {
      for (let at = above(lane.time, a - 1e-9), last = above(lane.time, b); at < last; at++) {
        counts.set(lane.kind[at], (counts.get(lane.kind[at]) ?? 0) + 1);
      }
    }
    const all = [...counts.values()].reduce((sum, one) => sum + one, 0);
    const each = [...counts].sort((one, other) => other[1] - one[1]).map(([kind, count]) => `${kindName(kind)} ${count}`);
    text = areHere(a, b)
      ? `Between the points: ${showTime(b - a)}, ${plural(all, "event")}${each.length ? `: ${each.join(", ")}` : ""}.`
      : `Between the points: ${showTime(b - a)}, some ${plural(eventsNear(a, b), "event")}.`;
  }
  element("marks").textContent = text;
  redraw();
}

let asked = 0;

async function find() {
  const input = element("query"), found = element("found"), number = ++asked;
  const tell = (text, isWrong) => {
    found.textContent = text;
    found.classList.toggle("wrong", isWrong);
    input.setAttribute("aria-invalid", String(isWrong));
  };
  chosen.hits = null;
  redraw();
  if (!input.value.trim()) return tell("", false);
  try {
    const test = parseQuery(input.value);
    if (lanes.some((lane) => lane.to < lane.from)) return tell(NOT_HERE, false);
    const hits = await search(test, () => number !== asked);
    if (!hits) return undefined;
    chosen.hits = hits;
    tell(`${plural(hits.reduce((sum, one) => sum + one.length, 0), "event")}${WHERE}`, false);
  } catch (why) {
    if (!(why instanceof Wrong)) throw why;
    tell(why.message, true);
  }
  return redraw();
}

// Goes to the next event that was found, or the one before.
function step(direction) {
  if (!chosen.hits) return;
  const centre = (sight.from + sight.to) / 2, half = (sight.to - sight.from) / 2;
  let best = null;
  chosen.hits.forEach((times, number) => {
    const time = direction > 0 ? times[above(times, centre + 0.5)] : times[above(times, centre - 0.5) - 1];
    if (time === undefined) return;
    if (best === null || (direction > 0 ? time < best.time : time > best.time)) best = { time, number };
  });
  if (!best) return;
  sight.row = best.number;
  // At the edges it cannot be in the middle, unless there is less in sight.
  const room = Math.max(20, Math.min(half, best.time, data.span - best.time));
  show(best.time - room, best.time + room);
  element("details").textContent = describe(best.number, best.time).join("; ");
}

function choose(name) {
  sight.view = data.views.find((view) => view.name === name) ?? data.views[0];
  element("view").value = sight.view.name;
  element("meaning").textContent = sight.view.about;
  const legend = element("ramp").getContext("2d");
  element("ramp").hidden = sight.view.colour === "task" || sight.view.colour === "lock";
  for (let x = 0; x < 160; x++) {
    legend.fillStyle = css(ramp(sight.view.colour === "queue" ? FEW_TO_MANY : SLOW_TO_FAST, x / 159));
    legend.fillRect(x, 0, 1, 10);
  }
  if (sight.view.find) {
    element("query").value = sight.view.find;
    find();
  }
  redraw();
  say();
}

function clear() {
  Object.assign(chosen, { marks: [], hits: null, follow: null });
  element("query").value = "";
  for (const id of ["marks", "follow", "details"]) element(id).textContent = "";
  find();
}

const middle = () => (sight.from + sight.to) / 2;

function chooseRow(by) {
  sight.row = Math.min(Math.max(0, sight.row + by), lanes.length - 1);
  if (levels.length && lanes.length) element("details").textContent = describe(sight.row, middle()).join("; ");
  redraw();
}

const KEYS = {
  ArrowLeft: () => pan(-0.2),
  ArrowRight: () => pan(0.2),
  ArrowUp: () => chooseRow(-1),
  ArrowDown: () => chooseRow(1),
  "+": () => zoom(0.5, sight.cursor),
  "=": () => zoom(0.5, sight.cursor),
  "-": () => zoom(2, sight.cursor),
  Home: () => show(0, data.span),
  n: () => step(1),
  p: () => step(-1),
  m: () => mark(sight.cursor ?? middle()),
  f: () => follow(sight.row, middle()),
  Escape: clear,
};

function listen() {
  let drag = null;
  plot.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || !Object.hasOwn(KEYS, event.key)) return;
    event.preventDefault();
    KEYS[event.key]();
  });
  plot.addEventListener("wheel", (event) => {
    event.preventDefault();
    const by = event.deltaY || event.deltaX;
    if (event.shiftKey || !event.deltaY) pan(Math.sign(by) * 0.1);
    else zoom(1.2 ** Math.sign(by), place(event).time);
  }, { passive: false });
  plot.addEventListener("pointerdown", (event) => {
    drag = { x: event.clientX, from: sight.from, to: sight.to, moved: false };
    plot.setPointerCapture(event.pointerId);
  });
  plot.addEventListener("pointermove", (event) => {
    if (!drag) return hover(event);
    const by = event.clientX - drag.x;
    drag.moved ||= Math.abs(by) > 3;
    const ns = (by * (drag.to - drag.from)) / width();
    if (drag.moved) show(drag.from - ns, drag.to - ns);
    return undefined;
  });
  plot.addEventListener("pointerup", (event) => {
    const { time, number } = place(event);
    if (drag && !drag.moved && number >= 0) {
      sight.row = number;
      if (event.shiftKey) mark(time);
      else follow(number, time);
    }
    drag = null;
  });
  plot.addEventListener("pointerleave", () => {
    element("tip").hidden = true;
    sight.cursor = null;
  });
  element("view").addEventListener("change", (event) => choose(event.target.value));
  element("query").addEventListener("input", find);
  element("query").addEventListener("keydown", (event) => event.key === "Enter" && step(1));
  for (const [id, act] of [["in", () => zoom(0.5)], ["out", () => zoom(2)], ["all", () => show(0, data.span)],
    ["previous", () => step(-1)], ["next", () => step(1)]]) element(id).addEventListener("click", act);
  new ResizeObserver(redraw).observe(plot);
}

async function start() {
  const { about } = data;
  element("about").textContent =
    `${plural(about.events, "event")} of ${plural(lanes.length, "CPU")} in ${showTime(data.span)} under ` +
    `${about.scheduler === null ? "the kernel's own scheduler" : `the scheduler ${about.scheduler}`}, Linux ${about.release}, ${about.recorded}.` +
    (about.lost ? ` ${plural(about.lost, "event")} missing.` : "") + (about.is_whole ? "" : " The file has no end: it was cut.");
  for (const view of data.views) {
    const option = element("view").appendChild(document.createElement("option"));
    [option.value, option.textContent] = [view.name, view.title];
  }
  choose(new URLSearchParams(location.hash.slice(1)).get("view"));
  listen();
  await loadLevels();
  document.documentElement.dataset.state = "overview";
  show(0, data.span);
  await loadEvents();
  findWaits();
  document.documentElement.dataset.state = "ready";
  say();
  find();
}

start().catch((why) => {
  document.documentElement.dataset.state = "failed";
  element("summary").textContent = `This page cannot be shown: ${why.message}`;
});
