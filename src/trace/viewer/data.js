// SPDX-License-Identifier: GPL-2.0-only
// The trace: JSON, and columns of numbers that are packed. Nothing in it is ever markup.

const element = (id) => document.getElementById(id);
const data = JSON.parse(element("data").textContent);
const IDLE = 0, UNKNOWN = 1, GAP = 255, NO_SPEED = 255;
const KIND = Object.fromEntries(data.kinds.map((name, number) => [name, number]));

const kindName = (kind) => (kind === GAP ? "gap" : data.kinds[kind] ?? `kind ${kind}`);

// The name of a task, harmless as the program that made this page shows it, and its PID.
function taskName(task) {
  const [pid, name] = data.tasks[task];
  if (task === IDLE || task === UNKNOWN) return name;
  return name ? `${name} (${pid})` : `task ${pid}`;
}

// Three digits and a unit.
function showTime(ns) {
  const size = Math.abs(ns);
  if (size < 1e3) return `${Math.round(ns)} ns`;
  const [value, unit] = size < 1e6 ? [ns / 1e3, "us"] : size < 1e9 ? [ns / 1e6, "ms"] : [ns / 1e9, "s"];
  return `${value.toFixed(Math.abs(value) < 10 ? 2 : Math.abs(value) < 100 ? 1 : 0)} ${unit}`;
}

// A place in the trace, to the nanosecond where that is in sight.
const showPlace = (ns, width) => {
  const digits = Math.min(9, Math.max(3, Math.ceil(9 - Math.log10(Math.max(1, width / 1000)))));
  return `${(ns / 1e9).toFixed(digits)} s`;
};

const showSpeed = (speed) => (speed === NO_SPEED ? "speed not known" : `${Math.round((100 * speed) / data.full)}% of full speed`);

// What an element has, which is not needed any more then.
function taken(id) {
  const node = element(id), text = node.textContent;
  node.remove();
  return text;
}

async function unpack(text) {
  let packed;
  if (Uint8Array.fromBase64) {
    packed = Uint8Array.fromBase64(text);
  } else {
    const raw = atob(text);
    packed = new Uint8Array(raw.length);
    for (let at = 0; at < raw.length; at++) packed[at] = raw.charCodeAt(at);
  }
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(stream).arrayBuffer();
}

// Columns one behind the other.
function columns(buffer) {
  let at = 0;
  return (type, count) => {
    const column = new type(buffer, at, count);
    at += column.byteLength;
    return column;
  };
}

function times(differences, jumps) {
  const found = new Float64Array(differences.length);
  let now = 0, jump = 0;
  for (let at = 0; at < found.length; at++) {
    now += differences[at];
    if (jump < jumps.length && jumps[jump][0] === at) now += jumps[jump++][1];
    found[at] = now;
  }
  return found;
}

// The first place in a sorted column with a value above.
function above(column, value) {
  let low = 0, high = column.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (column[middle] > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

// Levels of detail, the narrowest first; each has columns of all CPUs.
const levels = [];
// CPUs, with the events between two times that are here.
const lanes = data.cpus.map((cpu) => ({ cpu, from: 0, to: -1 }));

const isHere = (lane, from, to) => lane.from <= from && to <= lane.to;
const areHere = (from, to) => lanes.every((lane) => isHere(lane, from, to));

async function loadLevels() {
  const count = data.levels.reduce((sum, level) => sum + level.tiles * lanes.length, 0);
  const take = columns(await unpack(taken("tiles")));
  const task = take(Uint32Array, count), events = take(Uint16Array, count);
  const [busy, mean, low, high, queue, locked] = [0, 1, 2, 3, 4, 5].map(() => take(Uint8Array, count));
  let from = 0;
  for (const { width, tiles } of data.levels) {
    const to = from + tiles * lanes.length;
    const part = (column) => column.subarray(from, to);
    levels.push({ width, tiles, task: part(task), events: part(events), busy: part(busy), mean: part(mean), low: part(low),
      high: part(high), queue: part(queue), locked: part(locked) });
    from = to;
  }
}

const speedByte = (speed) => (speed === null ? NO_SPEED : Math.floor((Math.min(1024, Math.floor(speed)) * data.full) / 1024));

// Takes the events of a CPU between two times.
async function loadLane(number, cpu, packed, from, to) {
  const lane = lanes[number];
  const take = columns(await unpack(packed));
  const differences = take(Uint32Array, cpu.events);
  const [task, low, high] = [0, 1, 2].map(() => take(Uint32Array, cpu.events));
  const queueDifferences = take(Uint32Array, cpu.queue);
  const lockedDifferences = take(Uint32Array, cpu.locked);
  Object.assign(lane, { task, low, high, from, to });
  lane.waiting = take(Uint16Array, cpu.queue);
  lane.locked = take(Uint16Array, cpu.locked);
  lane.kind = take(Uint8Array, cpu.events);
  lane.time = times(differences, cpu.jumps);
  lane.queueTime = times(queueDifferences, cpu.queue_jumps);
  lane.lockedTime = times(lockedDifferences, cpu.locked_jumps);
  // What runs from when on, and how fast.
  const start = new Float64Array(cpu.events + 1), running = new Uint32Array(cpu.events + 1), speed = new Uint8Array(cpu.events + 1);
  let spans = 1;
  start[0] = cpu.from;
  running[0] = cpu.running;
  speed[0] = speedByte(cpu.speed);
  for (let at = 0; at < cpu.events; at++) {
    let next = running[spans - 1], fast = speed[spans - 1];
    const kind = lane.kind[at];
    if (kind === KIND.switch) next = task[at];
    else if (kind === GAP) next = UNKNOWN;
    else if (kind === KIND.frequency && cpu.per_khz !== null) fast = speedByte(low[at] * cpu.per_khz);
    else if (kind === KIND.tick && cpu.per_khz === null) fast = speedByte(low[at]);
    else continue;
    if (next === running[spans - 1] && fast === speed[spans - 1]) continue;
    if (lane.time[at] > start[spans - 1]) spans++;
    start[spans - 1] = lane.time[at];
    running[spans - 1] = next;
    speed[spans - 1] = fast;
  }
  lane.start = start.subarray(0, spans);
  lane.running = running.subarray(0, spans);
  lane.speed = speed.subarray(0, spans);
}

// What a CPU did between two times: from the events where these are few, else from tiles.
function sums(number, from, to) {
  const lane = lanes[number];
  const found = { busy: 0, known: 0, speed: 0, queue: 0 };
  const add = (ns, busy, speed, queue) => {
    found.busy += ns * busy;
    if (speed !== NO_SPEED) {
      found.known += ns;
      found.speed += ns * speed;
    }
    found.queue = Math.max(found.queue, queue);
  };
  if (isHere(lane, from, to)) {
    const first = above(lane.start, from) - 1, last = above(lane.start, to);
    if (last - first < 20000) {
      for (let at = first; at < last; at++) {
        const end = at + 1 < lane.start.length ? lane.start[at + 1] : lane.to;
        const ns = Math.min(end, to) - Math.max(lane.start[at], from);
        if (ns > 0) add(ns, lane.running[at] > UNKNOWN ? 1 : 0, lane.speed[at], 0);
      }
      for (let at = Math.max(0, above(lane.queueTime, from) - 1); at < lane.queueTime.length && lane.queueTime[at] < to; at++) {
        found.queue = Math.max(found.queue, lane.waiting[at]);
      }
      return found;
    }
  }
  const level = levels.findLast((one) => one.width * 200 <= to - from) ?? levels[0];
  const base = number * level.tiles;
  for (let tile = Math.floor(from / level.width); tile < level.tiles && tile * level.width < to; tile++) {
    const ns = Math.min((tile + 1) * level.width, to, data.span) - Math.max(tile * level.width, from);
    if (ns > 0) add(ns, level.busy[base + tile] / 255, level.mean[base + tile], level.queue[base + tile]);
  }
  return found;
}

// Events between two times, by tiles: no less than there are.
function eventsNear(from, to) {
  const [level] = levels;
  let found = 0;
  for (let number = 0; number < lanes.length; number++) {
    const first = number * level.tiles + Math.floor(from / level.width);
    const last = number * level.tiles + Math.min(level.tiles - 1, Math.floor(to / level.width));
    for (let tile = first; tile <= last; tile++) found += level.events[tile];
  }
  return found;
}
