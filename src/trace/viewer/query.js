// SPDX-License-Identifier: GPL-2.0-only
// What is looked for: fields that are compared, with and, or, not and brackets. What has
// no meaning is a Wrong, which says in words where and why.

class Wrong extends Error {
  constructor(at, why) {
    super(`at ${at + 1}: ${why}`);
  }
}

const UNITS = { ns: 1, us: 1e3, ms: 1e6, s: 1e9 };
const FIELDS = ["comm", "pid", "cpu", "event", "speed", "time"];
const OPERATORS = ["!=", "=", "<", ">", "~"];

function tokens(text) {
  const found = [];
  for (let at = 0; at < text.length; ) {
    const rest = text.slice(at);
    const space = /^\s+/.exec(rest);
    if (space) {
      at += space[0].length;
      continue;
    }
    const string = /^"((?:[^"\\]|\\.)*)"/.exec(rest);
    const sign = OPERATORS.find((one) => rest.startsWith(one)) ?? (/^[()]/.test(rest) ? rest[0] : null);
    const word = /^[^\s"()=!<>~]+/.exec(rest);
    if (string) found.push({ at, text: string[1].replace(/\\(.)/g, "$1"), kind: "string" });
    else if (sign) found.push({ at, text: sign, kind: "sign" });
    else if (word) found.push({ at, text: word[0], kind: "word" });
    else throw new Wrong(at, rest[0] === '"' ? "this quote has no end" : `${rest[0]} means nothing here`);
    at += (string ?? [sign ?? word?.[0]])[0].length;
  }
  return found;
}

function number(token, field) {
  const parts = /^(-?[0-9]*\.?[0-9]+(?:e[0-9]+)?)(.*)$/i.exec(token.text);
  if (!parts) throw new Wrong(token.at, `${field} is a number, not ${token.text}`);
  const [value, unit] = [Number(parts[1]), parts[2]];
  if (unit === "") return field === "time" ? value * 1e9 : value;
  if (field === "time" && Object.hasOwn(UNITS, unit)) return value * UNITS[unit];
  if (field === "speed" && unit === "%") return value / 100;
  throw new Wrong(token.at, field === "time" ? `${unit} is no unit of time: ns, us, ms, s` : `${unit} is no unit of ${field}`);
}

// A test of an event: of a lane, its place there, and the CPU's speed, NaN if not known.
function comparison(field, sign, value) {
  if (!FIELDS.includes(field.text)) {
    throw new Wrong(field.at, `there is no field ${field.text}: ${FIELDS.join(", ")}`);
  }
  const isText = field.text === "comm" || field.text === "event";
  if (isText ? "<>".includes(sign.text) : sign.text === "~") {
    throw new Wrong(sign.at, `${sign.text} does not compare ${isText ? "text: = != ~" : "numbers: = != < >"}`);
  }
  if (isText) {
    const wanted = value.text;
    const holds = (text) => (sign.text === "~" ? text.includes(wanted) : (text === wanted) === (sign.text === "="));
    if (field.text === "comm") {
      const tasks = Uint8Array.from(data.tasks, ([, name]) => (holds(name) ? 1 : 0));
      return (lane, at) => tasks[lane.task[at]] === 1;
    }
    if (sign.text !== "~" && wanted !== "gap" && !Object.hasOwn(KIND, wanted)) {
      throw new Wrong(value.at, `there is no event ${wanted}: ${data.kinds.join(", ")}, gap`);
    }
    const kinds = Uint8Array.from({ length: 256 }, (_, kind) => (holds(kindName(kind)) ? 1 : 0));
    return (lane, at) => kinds[lane.kind[at]] === 1;
  }
  const wanted = number(value, field.text);
  const compare = { "=": (a) => a === wanted, "!=": (a) => a !== wanted, "<": (a) => a < wanted, ">": (a) => a > wanted }[sign.text];
  const of = {
    pid: (lane, at) => data.tasks[lane.task[at]][0],
    cpu: (lane) => lane.cpu.id,
    time: (lane, at) => lane.time[at],
    speed: (lane, at, speed) => speed,
  }[field.text];
  // What is not known is neither equal to anything nor different.
  return (lane, at, speed) => {
    const is = of(lane, at, speed);
    return !Number.isNaN(is) && compare(is);
  };
}

// The test that a text means.
function parseQuery(text) {
  const all = tokens(text);
  let next = 0;
  const is = (word) => all[next]?.kind !== "string" && all[next]?.text === word;
  const end = () => all[next]?.at ?? text.length;
  const need = (what, kinds) => {
    const token = all[next];
    if (!token || !kinds.includes(token.kind)) throw new Wrong(end(), `${what} is missing here`);
    next++;
    return token;
  };
  const one = () => {
    if (is("not")) {
      next++;
      const inner = one();
      return (lane, at, speed) => !inner(lane, at, speed);
    }
    if (is("(")) {
      next++;
      const inner = either();
      if (!is(")")) throw new Wrong(end(), "a closing bracket is missing here");
      next++;
      return inner;
    }
    const field = need(`a field (${FIELDS.join(", ")})`, ["word"]);
    const sign = all[next];
    if (!sign || !OPERATORS.includes(sign.text) || sign.kind !== "sign") {
      throw new Wrong(end(), `one of = != < > ~ is missing behind ${field.text}`);
    }
    next++;
    return comparison(field, sign, need("a value", ["word", "string"]));
  };
  const both = () => {
    let left = one();
    while (is("and")) {
      next++;
      const [a, b] = [left, one()];
      left = (lane, at, speed) => a(lane, at, speed) && b(lane, at, speed);
    }
    return left;
  };
  const either = () => {
    let left = both();
    while (is("or")) {
      next++;
      const [a, b] = [left, both()];
      left = (lane, at, speed) => a(lane, at, speed) || b(lane, at, speed);
    }
    return left;
  };
  const found = either();
  if (next < all.length) throw new Wrong(end(), `and, or, or the end is expected, not ${all[next].text}`);
  return found;
}

const PART = 400000;

// The times at which it holds, by lane; null if `isStale` says so meanwhile. The page goes on
// to live while many events are looked at.
async function search(test, isStale) {
  const found = [];
  let looked = 0;
  for (const lane of lanes) {
    const hits = [];
    let span = 0;
    for (let at = 0; at < lane.time.length; at++) {
      while (span + 1 < lane.start.length && lane.start[span + 1] <= lane.time[at]) span++;
      const speed = lane.speed[span] === NO_SPEED ? NaN : lane.speed[span] / data.full;
      if (test(lane, at, speed)) hits.push(lane.time[at]);
      if (++looked % PART === 0) {
        await new Promise((go) => setTimeout(go));
        if (isStale()) return null;
      }
    }
    found.push(Float64Array.from(hits));
  }
  return found;
}
