// SPDX-License-Identifier: GPL-2.0-only
// All events are in the page.

const WHERE = "", NOT_HERE = "events are still being unpacked";

async function loadEvents() {
  for (let number = 0; number < lanes.length; number++) {
    await loadLane(number, lanes[number].cpu, taken(`lane-${number}`), 0, data.span);
    redraw();
  }
}

const sightSettled = () => {};
