// SPDX-License-Identifier: GPL-2.0-only
// Events come from the server that gave the page, a part of the trace at a time.

const WHERE = " in the part that is here", NOT_HERE = "zoom in: there are too many events in sight";
const asking = { isBusy: false, last: "" };

const loadEvents = async () => {};

// What to ask for: what is in sight with as much beside it as there may be; nothing if that is too much.
function partOf({ from, to }) {
  for (const margin of [1, 0.5, 0.1, 0]) {
    const more = (to - from) * margin;
    const part = { from: Math.floor(Math.max(0, from - more)), to: Math.ceil(Math.min(data.span, to + more)) };
    if (eventsNear(part.from, part.to) <= data.most) return part;
  }
  return null;
}

async function ask({ from, to }) {
  const answer = await fetch(`part?from=${from}&to=${to}`);
  if (!answer.ok) throw new Error(await answer.text());
  const part = await answer.json();
  for (let number = 0; number < lanes.length; number++) {
    await loadLane(number, part.cpus[number], part.lanes[number], part.from, part.to);
  }
  findWaits();
  element("part").textContent = `Events from ${showPlace(part.from, part.to - part.from)} to ${showPlace(part.to, part.to - part.from)} are here: ` +
    "these are looked at to find, to follow and to count.";
  if (chosen.follow) followTask(chosen.follow.task);
  document.documentElement.dataset.part = `${part.from}-${part.to}`;
  redraw();
  say();
  find();
}

// Whoever moves on meanwhile is answered next.
async function sightSettled() {
  const part = areHere(sight.from, sight.to) ? null : partOf(sight), key = JSON.stringify(part);
  if (!part || asking.isBusy || asking.last === key) return;
  Object.assign(asking, { isBusy: true, last: key });
  try {
    await ask(part);
  } catch (why) {
    asking.last = "";
    element("part").textContent = `Events cannot be had: ${why.message}`;
  }
  asking.isBusy = false;
}
