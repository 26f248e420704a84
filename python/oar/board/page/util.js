// Elements, numbers, colours, and settings that last.

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, v] of Object.entries(value)) element.style.setProperty(key, v);
    else if (name in element && name !== "list") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const PALETTE = ["#2f7de1", "#e8710a", "#12a06b", "#d6409f", "#8257e6", "#b98900", "#0e9bb3", "#d64545", "#6b9e23", "#96705b"];

// As many colours as needed: after the palette, hues that are far from their neighbours.
export function colour(index) {
  if (index < PALETTE.length) return PALETTE[index];
  return `hsl(${Math.round((index * 137.508) % 360)} 60% ${index % 2 ? 45 : 58}%)`;
}

export function cssColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// From blue over grey-green to orange, for numbers from 0 to 1.
export function ramp(t) {
  const stops = [[38, 84, 170], [32, 148, 170], [120, 178, 92], [226, 176, 42], [220, 82, 36]];
  const at = Math.min(Math.max(t, 0), 1) * (stops.length - 1), i = Math.min(Math.floor(at), stops.length - 2), f = at - i;
  return `rgb(${stops[i].map((c, k) => Math.round(c + (stops[i + 1][k] - c) * f)).join(" ")})`;
}
export const RAMP_CSS = `linear-gradient(90deg, ${[0, 0.25, 0.5, 0.75, 1].map(ramp).join(", ")})`;

export function short(value, digits = 4) {
  if (typeof value !== "number") return String(value);
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(Math.max(digits - 2, 1)).replace(/\.?0*e\+?/, "e").replaceAll("-", "−");
  if (Number.isInteger(value)) return value.toLocaleString("en").replace("-", "−");
  return String(+value.toPrecision(digits)).replace("-", "−");
}

export function duration(seconds) {
  const size = Math.abs(seconds), sign = seconds < 0 ? "−" : "";
  if (size < 1) return `${sign}${Math.round(size * 1000)} ms`;
  if (size < 60) return `${sign}${+size.toFixed(size < 10 ? 1 : 0)} s`;
  const whole = Math.round(size), pair = (a, b, big, small) => `${sign}${a}${big}${b ? ` ${b}${small}` : ""}`;
  if (size < 3600) return pair(Math.floor(whole / 60), whole % 60, "m", "s");
  if (size < 86400) return pair(Math.floor(whole / 3600), Math.floor((whole % 3600) / 60), "h", "m");
  return pair(Math.floor(whole / 86400), Math.floor((whole % 86400) / 3600), "d", "h");
}

const two = (n) => String(n).padStart(2, "0");
export function moment(seconds, withDate = true) {
  const d = new Date(seconds * 1000), time = `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
  return withDate ? `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${time}` : time;
}

// A number of JSON, where NaN and infinities are texts.
export const numberOf = (value) => typeof value === "number" ? value : Number(value);

// A filter from a regular expression; null if it is not one.
export function matcher(text) {
  if (!text) return () => true;
  try {
    const expression = new RegExp(text, "i");
    return (name) => expression.test(name);
  } catch {
    return null;
  }
}

export const saved = {
  get(key, otherwise) {
    try {
      const text = localStorage.getItem(`oar.board.${key}`);
      return text === null ? otherwise : JSON.parse(text);
    } catch {
      return otherwise;
    }
  },
  set(key, value) {
    try {
      localStorage.setItem(`oar.board.${key}`, JSON.stringify(value));
    } catch { /* a browser that keeps nothing still shows everything */ }
  },
};

export function download(name, type, text) {
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// One of several choices, as buttons that arrow keys move between.
export function segments(label, choices, current, choose) {
  const group = make("span", { className: "segments", role: "radiogroup", "aria-label": label });
  const select = (value) => {
    for (const button of group.children) {
      const on = button.value === value;
      button.setAttribute("aria-checked", on);
      button.tabIndex = on ? 0 : -1;
    }
  };
  for (const [value, text] of choices) {
    group.append(make("button", {
      type: "button", value, role: "radio", onclick: () => { select(value); choose(value); },
      onkeydown: (event) => {
        const way = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!way) return;
        event.preventDefault();
        const buttons = [...group.children], next = buttons[(buttons.indexOf(event.target) + way + buttons.length) % buttons.length];
        next.focus();
        next.click();
      },
    }, text));
  }
  select(current);
  return group;
}

// A box for a regular expression. A text that is none is marked, and the last one that was stays in force.
export function filterBox(label, key, change) {
  const box = make("input", { type: "search", placeholder: label, "aria-label": label, className: "find", value: saved.get(key, "") });
  let keep = matcher(box.value) ?? (() => true);
  box.addEventListener("input", () => {
    const found = matcher(box.value);
    box.classList.toggle("wrong", !found);
    box.title = found ? "" : "This is not a regular expression yet.";
    if (!found) return;
    keep = found;
    saved.set(key, box.value);
    change();
  });
  return { box, keeps: (name) => keep(name) };
}

// Calls body when the element comes into view, and after that whenever asked while it is.
export class WhileVisible {
  constructor(root) {
    this.bodies = new Map();
    this.observer = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        const record = this.bodies.get(entry.target);
        if (!record) continue;
        record.visible = entry.isIntersecting;
        if (record.visible) record.body();
      }
    }, { root, rootMargin: "200px" });
  }
  add(element, body) {
    this.bodies.set(element, { body, visible: false });
    this.observer.observe(element);
  }
  remove(element) {
    this.bodies.delete(element);
    this.observer.unobserve(element);
  }
  again() {
    for (const record of this.bodies.values()) if (record.visible) record.body();
  }
  stop() {
    this.observer.disconnect();
    this.bodies.clear();
  }
}

const tip = make("div", { id: "tip", role: "tooltip", hidden: true });
document.body.append(tip);
export function showTip(content, x, y) {
  tip.replaceChildren(content);
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, x + 18 + width > innerWidth ? x - width - 18 : x + 18)}px`;
  tip.style.top = `${Math.max(4, Math.min(y + 12, innerHeight - height - 6))}px`;
}
export function hideTip() {
  tip.hidden = true;
}

export function emptyState(title, text, code) {
  return make("div", { className: "empty" }, make("h2", {}, title), make("p", {}, text), code ? make("pre", {}, code) : null);
}
