// How the page asks its server. The token comes in the address once, and is sent as a header: there is no cookie.

const KEY = "greenroom-token";
const REST = [250, 500, 1000, 2000, 4000];
const LINES = 4;  // of the six that a browser opens to a host: what else is asked must get through
const GLANCE = 400;
const BETWEEN = 3000;

export function takeToken() {
  const given = new URLSearchParams(location.hash.replace(/^#/, ""));
  const token = given.get("t");
  if (!token) return;
  localStorage.setItem(KEY, token);
  given.delete("t");
  const rest = String(given);
  history.replaceState(null, "", `${location.pathname}${location.search}${rest ? `#${rest}` : ""}`);
}

// The address that a server printed, put into a tab that is open already, changes nothing but the fragment.
window.addEventListener("hashchange", () => {
  if (!new URLSearchParams(location.hash.replace(/^#/, "")).has("t")) return;
  takeToken();
  location.reload();
});

export class Refused extends Error {
  constructor(status, data) {
    super(data?.error ?? `the server answered ${status}`);
    this.status = status;
    this.next = data?.next ?? "";
    this.data = data ?? {};
  }
}

function headers(more) {
  const token = localStorage.getItem(KEY);
  return { ...(token ? { Authorization: `Bearer ${token}` } : {}), ...more };
}

export function addressOf(path, query = {}) {
  const said = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) || value instanceof Set ? value : [value]) {
      if (one !== null && one !== undefined && one !== "") said.append(name, one);
    }
  }
  const words = String(said);
  return `/api${path}${words ? `?${words}` : ""}`;
}

// One question; what the server refuses is thrown with its own words.
export async function asked(path, { query, method = "GET", body, more } = {}) {
  const sent = body === undefined ? undefined : JSON.stringify(body);
  const response = await fetch(addressOf(path, query), {
    method, body: sent, cache: "no-store",
    headers: headers({ ...(method === "GET" ? {} : { "Content-Type": "application/json" }), ...more }),
  }).catch(() => { throw new Error("The server does not answer. Is `greenroom web` still running? What it had confirmed is kept."); });
  const data = await response.json().catch(() => null);
  if (!response.ok) throw new Refused(response.status, data);
  return data;
}

export async function downloaded(path, name, query) {
  const response = await fetch(addressOf(path, query), { headers: headers() });
  if (!response.ok) throw new Refused(response.status, await response.json().catch(() => null));
  const address = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.setAttribute("href", address);
  link.setAttribute("download", name);
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

// Lines of JSON as they come.
export async function eachLine(path, query, heard, signal) {
  const response = await fetch(addressOf(path, query), { headers: headers(), signal });
  if (!response.ok) throw new Refused(response.status, await response.json().catch(() => null));
  await readParts(response, "\n", (line) => line.trim() && heard(JSON.parse(line)));
}

async function readParts(response, end, heard) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const parts = text.split(end);
    text = parts.pop();
    parts.forEach(heard);
  }
}

// Use one of the lines that all tabs of this browser share; false if none is free.
async function onFreeLine(use) {
  if (!navigator.locks) return use();
  for (let line = 0; line < LINES; line += 1) {
    const isMine = await navigator.locks.request(`greenroom-line-${line}`, { ifAvailable: true }, (lock) => lock && use().then(() => true));
    if (isMine) return true;
  }
  return false;
}

// What the store says from `since` on: each change once, also after the server or the line was gone.
// A hidden tab lets go of its line, and takes it up where it left off. Of many tabs in sight a few keep a line;
// the others look for news every few seconds, until a line is free.
export function followed(query, since, heard, told = () => null) {
  let last = since;
  let control = null;
  let failed = 0;
  let stopped = false;

  function take(block) {
    const fields = {};
    for (const line of block.split("\n")) {
      const found = /^(id|event|data): ?(.*)$/.exec(line);
      if (found) fields[found[1]] = found[1] === "data" && fields.data !== undefined ? `${fields.data}\n${found[2]}` : found[2];
    }
    if (fields.id !== undefined) {
      const place = Number(fields.id);
      if (fields.event !== "again" && fields.event !== "going" && last !== null && place <= last) return;
      last = place;
    }
    if (fields.event) heard({ ...JSON.parse(fields.data ?? "{}"), kind: fields.event });
  }

  async function open() {
    if (stopped || control || document.hidden) return;
    control = new AbortController();
    const mine = control;
    let hasLine = true;
    try {
      hasLine = await onFreeLine(() => listen(mine));
      if (!hasLine) await glance(mine);
    } catch (error) {
      if (mine.signal.aborted) return;
      told(error instanceof Refused ? "refused" : "gone");
      if (error instanceof Refused && error.status === 401) return;
      setTimeout(open, REST[Math.min(failed, REST.length - 1)]);
      failed += 1;
    } finally {
      if (control === mine) control = null;
    }
    if (!hasLine && !stopped) setTimeout(open, BETWEEN);
  }

  async function listen(mine, isKept = true) {
    if (mine.signal.aborted) throw new Error("let go");
    const response = await fetch(addressOf("/stream", { ...query, since: last }), { headers: headers(), signal: mine.signal, cache: "no-store" });
    if (!response.ok) throw new Refused(response.status, await response.json().catch(() => null));
    failed = 0;
    told(isKept ? "live" : "glancing");
    await readParts(response, "\n\n", take);
    throw new Error("the line ended");
  }

  async function glance(mine) {
    const over = setTimeout(() => mine.abort(), GLANCE);
    await listen(mine, false).catch((error) => { if (!mine.signal.aborted) throw error; });
    clearTimeout(over);
  }

  function rest() {
    control?.abort();
    control = null;
    told("resting");
  }

  const turned = () => (document.hidden ? rest() : open());
  document.addEventListener("visibilitychange", turned);
  window.addEventListener("pagehide", rest);
  open();
  return () => {
    stopped = true;
    document.removeEventListener("visibilitychange", turned);
    control?.abort();
  };
}
