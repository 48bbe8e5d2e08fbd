// SPDX-License-Identifier: GPL-2.0-only
// Waits for locks: who waits for whom from when to when, and arrows between them.

const waits = [];
const FAR = 2000, MOST_ARROWS = 400;

// Where the task runs at that time, or next: a lane and a time; null if that is not near.
function runsNext(pid, time) {
  let best = null;
  lanes.forEach(({ start, running }, lane) => {
    const first = Math.max(0, above(start, time) - 1);
    for (let span = first; span < running.length && span < first + FAR; span++) {
      if (best && start[span] >= best.time) break;
      if (running[span] <= UNKNOWN || data.tasks[running[span]][0] !== pid) continue;
      best = { lane, time: Math.max(start[span], time) };
      break;
    }
  });
  return best;
}

// All waits, of the events that are here.
function findWaits() {
  const all = [];
  waits.length = 0;
  const wanted = new Uint8Array(256);
  for (const kind of ["lock-wait", "lock-hold", "handoff", "lock-left"].map((name) => KIND[name]).concat(GAP)) wanted[kind] = 1;
  lanes.forEach((lane, number) => {
    for (let at = 0; at < (lane.kind?.length ?? 0); at++) {
      if (wanted[lane.kind[at]]) all.push({ lane: number, at, time: lane.time[at] });
    }
  });
  all.sort((a, b) => a.time - b.time || a.lane - b.lane || a.at - b.at);
  const open = new Map(), holders = new Map();
  for (const { lane: number, at, time } of all) {
    const lane = lanes[number], kind = kindName(lane.kind[at]);
    const task = lane.task[at], [pid] = data.tasks[task], lock = lane.low[at];
    if (kind === "gap") {
      open.clear();
      holders.clear();
    } else if (kind === "lock-wait") {
      const wait = { task, pid, lock, from: time, to: lane.to, lane: number, holders: [], given: null };
      if (holders.has(lock)) wait.holders.push({ from: time, task: holders.get(lock) });
      open.set(pid, wait);
      waits.push(wait);
    } else if (kind === "lock-hold") {
      holders.set(lock, task);
      for (const wait of open.values()) if (wait.lock === lock) wait.holders.push({ from: time, task });
    } else if (open.has(pid)) {
      const wait = open.get(pid);
      open.delete(pid);
      wait.to = time;
      if (kind === "handoff") wait.given = number;
      if (![...open.values()].some((other) => other.lock === wait.lock)) holders.delete(wait.lock);
    }
  }
}

// Where its arrows lead, once they are drawn.
function ends(wait) {
  const [holder] = wait.holders;
  wait.ends ??= {
    holder: holder ? runsNext(data.tasks[holder.task][0], wait.from) : null,
    next: wait.given === null ? null : runsNext(wait.pid, wait.to),
  };
  return wait.ends;
}

// For whom the task waits at that time, for whom that one does, and so on.
function chain(pid, time) {
  const names = [], seen = new Set();
  for (let next = pid; next !== undefined && !seen.has(next); ) {
    seen.add(next);
    const wait = waits.find((one) => one.pid === next && one.from <= time && time < one.to);
    const holder = wait?.holders.findLast((one) => one.from <= time)?.task;
    if (wait && !names.length) names.push(taskName(wait.task));
    if (wait) names.push(`lock ${wait.lock}`, holder === undefined ? "an unknown holder" : taskName(holder));
    next = holder === undefined ? undefined : data.tasks[holder][0];
  }
  return names;
}

// Chains of those whose wait began on this CPU, in lines.
const chainsAt = (number, time) => waits
  .filter((wait) => wait.lane === number && wait.from <= time && time < wait.to)
  .map((wait) => `waits: ${chain(wait.pid, time).join(" → ")}`);

function arrow(canvas, from, to, colour) {
  const angle = Math.atan2(to.y - from.y, to.x - from.x), head = 7;
  canvas.strokeStyle = canvas.fillStyle = colour;
  canvas.lineWidth = 2;
  canvas.beginPath();
  canvas.moveTo(from.x, from.y);
  canvas.lineTo(to.x, to.y);
  canvas.stroke();
  canvas.beginPath();
  canvas.moveTo(to.x, to.y);
  for (const side of [-0.4, 0.4]) canvas.lineTo(to.x - head * Math.cos(angle + side), to.y - head * Math.sin(angle + side));
  canvas.fill();
}

// Arrows of the waits in sight, unless these are too many to be told apart; `place` is of a lane and a time.
function drawWaits(canvas, from, to, place) {
  const seen = waits.filter((wait) => wait.from <= to && wait.to >= from);
  if (seen.length > MOST_ARROWS) return;
  for (const wait of seen) {
    const { holder, next } = ends(wait);
    if (holder) arrow(canvas, place(wait.lane, wait.from), place(holder.lane, holder.time), "#7f1d1d");
    if (next) arrow(canvas, place(wait.given, wait.to), place(next.lane, next.time), "#166534");
  }
}
