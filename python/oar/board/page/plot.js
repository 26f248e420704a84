// A canvas with axes: scales, ticks, sharp lines on any screen.
import { cssColour, duration, moment, short } from "./util.js";

export function niceTicks(low, high, count) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const rough = span / Math.max(count, 1), power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough) ?? 10 * power;
  const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
  // Numbers that differ in their last bits only have no steps between them.
  if (!Number.isSafeInteger(first) || !Number.isSafeInteger(last)) return [low];
  return Array.from({ length: Math.max(last - first + 1, 0) }, (_, i) => (first + i) * step);
}

const TIMES = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000];

// Whole seconds, minutes, hours or days; on clocks, of this time zone.
export function timeTicks(low, high, count, clock) {
  const step = TIMES.find((t) => t * count >= high - low);
  if (!step || high - low < 4) return niceTicks(low, high, count);
  const zone = clock ? new Date(low * 1000).getTimezoneOffset() * 60 : 0;
  const first = Math.ceil((low - zone) / step), last = Math.floor((high - zone) / step);
  return Array.from({ length: Math.max(last - first + 1, 0) }, (_, i) => (first + i) * step + zone);
}

export function logTicks(low, high) {
  const from = Math.ceil(Math.log10(low) - 1e-9), to = Math.floor(Math.log10(high) + 1e-9);
  if (to - from < 1) return niceTicks(low, high, 4).filter((t) => t > 0);
  const every = Math.ceil((to - from + 1) / 6), ticks = [];
  for (let e = from; e <= to; e += every) ticks.push(10 ** e);
  return ticks;
}

export class Scale {
  constructor(low, high, from, to, log = false) {
    Object.assign(this, { low, high, from, to, log });
    this.a = log ? Math.log10(low) : low;
    this.b = log ? Math.log10(high) : high;
  }
  at(value) {
    const v = this.log ? Math.log10(value) : value;
    return this.from + (v - this.a) / (this.b - this.a || 1) * (this.to - this.from);
  }
  inverse(pixel) {
    const v = this.a + (pixel - this.from) / (this.to - this.from || 1) * (this.b - this.a);
    return this.log ? 10 ** v : v;
  }
}

// A range that has a width, with some room around it.
export function roomy(low, high, log = false) {
  if (!Number.isFinite(low) || !Number.isFinite(high)) return log ? [0.1, 1] : [0, 1];
  if (high - low <= 1e-9 * Math.max(Math.abs(low), Math.abs(high))) return log ? [low / 2, high * 2] : [low - (Math.abs(low) * 0.1 || 1), high + (Math.abs(high) * 0.1 || 1)];
  if (log) {
    const room = (high / low) ** 0.05;
    return [low / room, high * room];
  }
  return [low - (high - low) * 0.05, high + (high - low) * 0.05];
}

export class Canvas {
  constructor(parent, height, redraw) {
    this.element = document.createElement("canvas");
    this.element.tabIndex = 0;
    this.holder = document.createElement("div");
    this.holder.className = "plot";
    this.holder.style.height = typeof height === "number" ? `${height}px` : height;
    this.message = document.createElement("div");
    this.message.className = "message";
    this.holder.append(this.element, this.message);
    parent.append(this.holder);
    this.redraw = redraw;
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.holder);
    this.resize();
  }
  resize() {
    const ratio = devicePixelRatio || 1, { clientWidth: width, clientHeight: height } = this.holder;
    if (!width || !height) return;
    this.width = width;
    this.height = height;
    this.element.width = Math.round(width * ratio);
    this.element.height = Math.round(height * ratio);
    this.context = this.element.getContext("2d");
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.redraw();
  }
  say(text) {
    this.message.textContent = text;
  }
  clear() {
    this.context.clearRect(0, 0, this.width, this.height);
    this.context.font = '11px system-ui, -apple-system, "Segoe UI", sans-serif';
    this.context.lineWidth = 1;
    this.context.globalAlpha = 1;
  }
  stop() {
    this.observer.disconnect();
  }
}

export function tickText(kind, span) {
  if (kind === "wall") return (v) => span > 2 * 86400 ? moment(v).slice(5, 10) : moment(v, false).slice(0, span < 600 ? 8 : 5);
  if (kind === "relative") return (v) => v === 0 ? "0" : duration(v);
  return (v) => short(v, 4);
}

// Grid and labels. Returns nothing; the scales say where.
export function drawAxes(canvas, x, y, { xText = short, yText = short, xTicks, yTicks } = {}) {
  const c = canvas.context, grid = cssColour("--grid"), faint = cssColour("--faint");
  c.strokeStyle = grid;
  c.fillStyle = faint;
  c.beginPath();
  const ys = yTicks ?? (y.log ? logTicks(y.low, y.high) : niceTicks(y.low, y.high, Math.max(2, (y.from - y.to) / 38)));
  c.textAlign = "right";
  c.textBaseline = "middle";
  for (const t of ys) {
    const at = Math.round(y.at(t)) + 0.5;
    if (at < y.to - 1 || at > y.from + 1) continue;
    c.moveTo(x.from, at);
    c.lineTo(x.to, at);
    c.fillText(yText(t), x.from - 6, at);
  }
  const xs = xTicks ?? niceTicks(x.low, x.high, Math.max(2, (x.to - x.from) / 62));
  c.textAlign = "center";
  c.textBaseline = "top";
  let free = -Infinity;
  for (const t of xs) {
    const at = Math.round(x.at(t)) + 0.5;
    if (at < x.from - 1 || at > x.to + 1) continue;
    c.moveTo(at, y.from);
    c.lineTo(at, y.to);
    const text = xText(t), half = c.measureText(text).width / 2;
    const place = Math.min(at, canvas.width - half - 1);
    if (place - half < free) continue;
    c.fillText(text, place, y.from + 6);
    free = place + half + 8;
  }
  c.stroke();
  c.strokeStyle = cssColour("--line");
  c.strokeRect(x.from + 0.5, y.to + 0.5, x.to - x.from, y.from - y.to);
}
