// SPDX-License-Identifier: GPL-2.0-only
// What a pixel, a label and a sign look like.

const AXIS = 20, GUTTER = 56;
const BACKGROUND = [255, 255, 255], NOT_KNOWN = [196, 196, 200], PALE = 0.78;
const SLOW_TO_FAST = [[48, 18, 130], [40, 110, 240], [30, 190, 200], [90, 200, 80], [245, 190, 40], [215, 40, 20]];
const FEW_TO_MANY = [[250, 220, 90], [250, 170, 60], [235, 100, 40], [190, 30, 30], [110, 0, 40]];

const mix = (a, b, share) => a.map((part, at) => part + (b[at] - part) * share);
const pack = ([red, green, blue]) => ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
const css = ([red, green, blue]) => `rgb(${Math.round(red)} ${Math.round(green)} ${Math.round(blue)})`;

function ramp(colours, share) {
  const place = Math.min(Math.max(share, 0), 1) * (colours.length - 1);
  const at = Math.min(Math.floor(place), colours.length - 2);
  return mix(colours[at], colours[at + 1], place - at);
}

function hue(name) {
  let hash = 2166136261;
  for (let at = 0; at < name.length; at++) hash = Math.imul(hash ^ name.charCodeAt(at), 16777619) >>> 0;
  // Names that differ in one character have bits in common up to here.
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d) >>> 0;
  hash = Math.imul(hash ^ (hash >>> 12), 0x297a2d39) >>> 0;
  hash = (hash ^ (hash >>> 15)) >>> 0;
  const part = (shift) => {
    const turn = ((hash % 360) / 60 + shift) % 6;
    return Math.min(Math.max(Math.abs(turn - 3) - 1, 0), 1);
  };
  const light = 90 + ((hash >>> 16) % 70);
  return [0, 4, 2].map((shift) => 40 + part(shift) * (light + 20));
}

const STEPS = 16;
const MOST_WAITING = 8;

// Colours of all values, each with shares of busy time from none (pale) to all.
function shades(count, colour) {
  const found = new Uint32Array(count * STEPS);
  for (let value = 0; value < count; value++) {
    const full = colour(value), pale = mix(full, BACKGROUND, PALE);
    for (let step = 0; step < STEPS; step++) found[value * STEPS + step] = pack(mix(pale, full, step / (STEPS - 1)));
  }
  return found;
}

const frequencyShades = shades(256, (speed) => (speed === NO_SPEED ? [120, 120, 130] : ramp(SLOW_TO_FAST, speed / data.full)));
const queueShades = shades(MOST_WAITING + 1, (waiting) => ramp(FEW_TO_MANY, waiting / MOST_WAITING));
const taskColours = Uint32Array.from(data.tasks, ([, name], task) =>
  pack(task === IDLE ? [238, 240, 244] : task === UNKNOWN ? NOT_KNOWN : hue(name)));
const LOCK_COLOURS = [[150, 160, 175], [235, 190, 40], [205, 30, 30]];
const lockShades = shades(LOCK_COLOURS.length, (state) => LOCK_COLOURS[state]);
const unknownColour = pack(NOT_KNOWN);

// What is in a pixel's time, in the same fields for a tile and for events.
const pixel = { task: UNKNOWN, busy: 0, speed: NO_SPEED, queue: 0, locked: 0 };

const PAINT = {
  frequency: () => frequencyShades[pixel.speed * STEPS + Math.round(pixel.busy * (STEPS - 1))],
  task: () => taskColours[pixel.task],
  queue: () => queueShades[Math.min(pixel.queue, MOST_WAITING) * STEPS + Math.round(pixel.busy * (STEPS - 1))],
  lock: () => lockShades[Math.min(pixel.locked, LOCK_COLOURS.length - 1) * STEPS + Math.round(pixel.busy * (STEPS - 1))],
};

// The level whose tiles are no wider than a pixel; none where the events themselves are few.
const levelOf = (nsPerPixel) => levels.findLast((level) => level.width <= nsPerPixel);

function paintTiles(row, number, level, from, nsPerPixel, paint) {
  const base = number * level.tiles;
  for (let x = 0; x < row.length; x++) {
    const tile = Math.floor((from + (x + 0.5) * nsPerPixel) / level.width);
    if (tile < 0 || tile >= level.tiles) {
      row[x] = 0;
      continue;
    }
    const at = base + tile;
    pixel.task = level.task[at];
    pixel.busy = level.busy[at] / 255;
    pixel.speed = level.mean[at];
    pixel.queue = level.queue[at];
    pixel.locked = level.locked[at];
    row[x] = pixel.task === UNKNOWN && pixel.busy === 0 ? unknownColour : paint();
  }
}

// The most of values that hold from a time on, in one pixel's time after the other.
function most(times, values, from) {
  let at = above(times, from) - 1;
  return (end) => {
    let found = at < 0 ? 0 : values[at];
    while (at + 1 < times.length && times[at + 1] < end) found = Math.max(found, values[++at]);
    return found;
  };
}

function paintEvents(row, lane, from, nsPerPixel, paint) {
  const { start, running, speed } = lane;
  const queue = most(lane.queueTime, lane.waiting, from), locked = most(lane.lockedTime, lane.locked, from);
  let span = Math.max(0, above(start, from) - 1);
  for (let x = 0; x < row.length; x++) {
    const begin = Math.max(0, from + x * nsPerPixel), end = Math.min(from + (x + 1) * nsPerPixel, data.span);
    if (end <= begin) {
      row[x] = 0;
      continue;
    }
    let longest = -1, busy = 0, fast = 0, known = 0;
    for (;;) {
      const until = span + 1 < start.length ? start[span + 1] : lane.to;
      const ns = Math.min(until, end) - Math.max(start[span], begin);
      if (ns > longest) {
        longest = ns;
        pixel.task = running[span];
      }
      if (running[span] > UNKNOWN) busy += ns;
      if (speed[span] !== NO_SPEED) {
        known += ns;
        fast += ns * speed[span];
      }
      if (until >= end || span + 1 >= start.length) break;
      span++;
    }
    pixel.queue = queue(end);
    pixel.locked = locked(end);
    pixel.busy = Math.min(1, busy / (end - begin));
    pixel.speed = known > 0 ? Math.round(fast / known) : NO_SPEED;
    row[x] = pixel.task === UNKNOWN && busy === 0 ? unknownColour : paint();
  }
}

// Signs of single events: what, and where in its row.
const SIGNS = { wakeup: "▾", "wakeup-new": "▾", fork: "+", exec: "*", exit: "×", migrate: "→", gap: "?", throttle: "‖", spinner: "~" };
const LABEL = 34;

// Names of those that run and signs of what happens, where there is room for them.
function label(canvas, lane, top, height, from, nsPerPixel, width) {
  if (height < 11) return;
  const last = above(lane.start, from + width * nsPerPixel);
  const first = Math.max(0, above(lane.start, from) - 1);
  canvas.fillStyle = "#000";
  if (last - first < width) {
    for (let span = first; span < last; span++) {
      const until = span + 1 < lane.start.length ? lane.start[span + 1] : lane.to;
      const left = Math.max(0, (lane.start[span] - from) / nsPerPixel);
      const room = Math.min(width, (until - from) / nsPerPixel) - left;
      if (room < LABEL || lane.running[span] === IDLE) continue;
      canvas.save();
      canvas.beginPath();
      canvas.rect(GUTTER + left, top, room - 2, height);
      canvas.clip();
      const name = taskName(lane.running[span]);
      canvas.lineWidth = 3;
      canvas.strokeStyle = "#ffffffcc";
      canvas.strokeText(name, GUTTER + left + 3, top + height / 2);
      canvas.fillText(name, GUTTER + left + 3, top + height / 2);
      canvas.restore();
    }
  }
  const begin = above(lane.time, from), end = above(lane.time, from + width * nsPerPixel);
  if (end - begin > width / 8) return;
  for (let at = begin; at < end; at++) {
    const sign = SIGNS[kindName(lane.kind[at])];
    if (sign) canvas.fillText(sign, GUTTER + (lane.time[at] - from) / nsPerPixel - 3, top + height - 4);
  }
}

// Times at round distances.
function axis(canvas, from, nsPerPixel, width) {
  const wanted = nsPerPixel * 120;
  const power = 10 ** Math.floor(Math.log10(wanted));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= wanted);
  canvas.fillStyle = "#4b5563";
  canvas.textBaseline = "middle";
  for (let at = Math.ceil(Math.max(0, from) / step) * step; at <= Math.min(data.span, from + width * nsPerPixel); at += step) {
    const x = GUTTER + (at - from) / nsPerPixel;
    canvas.fillRect(x, AXIS - 5, 1, 5);
    canvas.fillText(showPlace(at, step * 10), x + 3, AXIS / 2);
  }
}
