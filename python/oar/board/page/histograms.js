// Histograms over steps: one after another, on top of each other, or as bands of percentiles.
import { CardView, cardHead } from "./cards.js";
import { Canvas, drawAxes, roomy, Scale } from "./plot.js";
import { cssColour, hideTip, make, numberOf, saved, segments, short, showTip } from "./util.js";

const LEFT = 10, RIGHT = 44, TOP = 10, BOTTOM = 24;
const BINS = 48;

// Counts in even bins over a range; a bucket gives each bin the part of it that lies inside.
function rebin(edges, counts, low, high) {
  const bins = new Float64Array(BINS), width = (high - low) / BINS || 1;
  const binOf = (v) => Math.min(Math.max(Math.floor((v - low) / width), 0), BINS - 1);
  counts.forEach((count, i) => {
    const a = edges[i], b = edges[i + 1];
    if (!count) return;
    if (!(b > a)) {
      bins[binOf(a)] += count;
      return;
    }
    for (let k = binOf(a); k <= binOf(b); k++) {
      const part = Math.min(b, low + (k + 1) * width) - Math.max(a, low + k * width);
      if (part > 0) bins[k] += count * part / (b - a);
    }
  });
  return bins;
}

// The value below which a part of the counts lies.
function percentile(edges, counts, part) {
  const total = counts.reduce((a, b) => a + b, 0);
  let seen = 0;
  for (let i = 0; i < counts.length; i++) {
    if (counts[i] && seen + counts[i] >= part * total) return edges[i] + (part * total - seen) / counts[i] * (edges[i + 1] - edges[i]);
    seen += counts[i];
  }
  return edges.at(-1);
}
const BANDS = [[0, 1], [0.07, 0.93], [0.16, 0.84], [0.31, 0.69]];

class HistogramCard {
  constructor(view, tag, run) {
    Object.assign(this, { view, tag, run, points: [] });
    this.element = make("section", { className: "card" }, cardHead(view.board, tag, run));
    this.canvas = new Canvas(this.element, 250, () => this.draw());
    this.canvas.element.setAttribute("role", "img");
    this.canvas.element.setAttribute("aria-label", `Histograms ${tag}. Up and down arrows choose a step.`);
    this.canvas.element.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.element.addEventListener("pointerleave", () => this.choose(null));
    this.canvas.element.addEventListener("blur", () => this.choose(null));
    this.canvas.element.addEventListener("keydown", (event) => this.key(event));
    this.chosen = null;
  }

  set(points) {
    this.points = points.map(([step, wall, edges, counts]) => ({ step, wall, edges: edges.map(numberOf), counts: counts.map(numberOf) }))
      .filter(({ edges, counts }) => edges.every(Number.isFinite) && counts.every(Number.isFinite));
    this.draw();
  }

  // At most so many that they can be told apart.
  get shown() {
    const every = Math.ceil(this.points.length / 40);
    return this.points.filter((_, i) => (this.points.length - 1 - i) % every === 0);
  }

  draw() {
    const { canvas } = this;
    if (!canvas?.context || !this.points.length) return;
    canvas.clear();
    canvas.element.dataset.drawn = this.points.length;
    if (this.view.mode === "bands") this.drawBands();
    else this.drawRidges();
  }

  drawRidges() {
    const { canvas, shown } = this, c = canvas.context, offset = this.view.mode === "offset";
    const low = Math.min(...shown.map((p) => p.edges[0])), high = Math.max(...shown.map((p) => p.edges.at(-1)));
    const [a, b] = roomy(low, high);
    const x = new Scale(a, b, LEFT, canvas.width - RIGHT);
    const bins = shown.map((p) => rebin(p.edges, p.counts, low, high === low ? low + 1e-9 : high)), most = Math.max(...bins.map((bin) => Math.max(...bin)), 1e-12);
    const bottom = canvas.height - BOTTOM, room = offset ? (bottom - TOP) * 0.6 : 0, tall = (bottom - TOP) - room;
    const base = (i) => bottom - (shown.length > 1 ? room * (1 - i / (shown.length - 1)) : 0);
    const first = shown[0].step, last = shown.at(-1).step;
    drawAxes(canvas, x, new Scale(0, 1, bottom, TOP), { yTicks: [] });
    this.rows = shown.map((point, i) => ({ point, base: base(i), bins: bins[i] }));
    this.geometry = { x, low, high, tall, most };
    const width = (high - low) / BINS || 1e-9;
    const colour = this.view.board.colour(this.run), card = cssColour("--card");
    this.rows.forEach((row, i) => {
      const chosen = this.chosen === row.point;
      c.beginPath();
      c.moveTo(x.at(low), row.base);
      row.bins.forEach((count, k) => c.lineTo(x.at(low + (k + 0.5) * width), row.base - count / most * tall));
      c.lineTo(x.at(high), row.base);
      const age = shown.length > 1 ? i / (shown.length - 1) : 1;
      if (offset) {
        c.fillStyle = `color-mix(in srgb, ${colour} ${Math.round(18 + 55 * age)}%, ${card})`;
        c.fill();
      }
      c.strokeStyle = offset ? (chosen ? cssColour("--ink") : card) : colour;
      c.globalAlpha = offset ? 1 : chosen ? 1 : 0.12 + 0.6 * age;
      c.lineWidth = chosen ? 2 : 1;
      c.stroke();
      c.globalAlpha = 1;
    });
    c.fillStyle = cssColour("--faint");
    c.textAlign = "left";
    c.textBaseline = "middle";
    if (offset) {
      const every = Math.max(1, Math.ceil(this.rows.length / 6));
      this.rows.forEach((row, i) => {
        if ((this.rows.length - 1 - i) % every === 0) c.fillText(short(row.point.step), x.to + 6, row.base - 4);
      });
    } else if (first !== last) {
      c.fillText(`${short(first)} to`, x.to + 4, TOP + 8);
      c.fillText(short(last), x.to + 4, TOP + 22);
    }
  }

  drawBands() {
    const { canvas, points } = this, c = canvas.context, colour = this.view.board.colour(this.run);
    const xs = points.map((p) => p.step), low = Math.min(...points.map((p) => p.edges[0])), high = Math.max(...points.map((p) => p.edges.at(-1)));
    const x = new Scale(xs[0], xs.length > 1 && xs.at(-1) > xs[0] ? xs.at(-1) : xs[0] + 1, 46, canvas.width - 10);
    const y = new Scale(...roomy(low, high), canvas.height - BOTTOM, TOP);
    drawAxes(canvas, x, y);
    this.geometry = { x, bands: true };
    c.fillStyle = c.strokeStyle = colour;
    for (const [from, to] of BANDS) {
      c.globalAlpha = 0.16;
      c.beginPath();
      points.forEach((p) => c.lineTo(x.at(p.step), y.at(percentile(p.edges, p.counts, from))));
      [...points].reverse().forEach((p) => c.lineTo(x.at(p.step), y.at(percentile(p.edges, p.counts, to))));
      c.fill();
    }
    c.globalAlpha = 1;
    c.lineWidth = 1.7;
    c.beginPath();
    points.forEach((p) => c.lineTo(x.at(p.step), y.at(percentile(p.edges, p.counts, 0.5))));
    c.stroke();
    if (this.chosen) {
      c.strokeStyle = cssColour("--faint");
      c.lineWidth = 1;
      c.beginPath();
      c.moveTo(x.at(this.chosen.step), y.from);
      c.lineTo(x.at(this.chosen.step), y.to);
      c.stroke();
    }
  }

  hover(event) {
    if (!this.geometry) return;
    const box = this.canvas.element.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
    if (this.geometry.bands) {
      const at = this.geometry.x.inverse(px);
      this.choose(this.points.reduce((a, b) => Math.abs(b.step - at) < Math.abs(a.step - at) ? b : a), event);
      return;
    }
    const { x, low, high, tall, most } = this.geometry, k = Math.floor((x.inverse(px) - low) / ((high - low) / BINS || 1));
    const height = (row) => row.base - (row.bins[k] ?? 0) / most * tall;
    // The frontmost whose area is under the pointer, else the nearest line.
    const under = [...this.rows].reverse().find((row) => this.view.mode === "offset" && py >= height(row) && py <= row.base + 2);
    const near = under ?? this.rows.reduce((a, b) => Math.abs(height(b) - py) < Math.abs(height(a) - py) ? b : a);
    const from = low + k * (high - low) / BINS, to = from + (high - low) / BINS;
    this.choose(near.point, event, k >= 0 && k < BINS ? `${short(near.bins[k], 3)} from ${short(from, 3)} to ${short(to, 3)}` : "");
  }

  choose(point, event, more = "") {
    if (point !== this.chosen) {
      this.chosen = point;
      this.draw();
    }
    if (!point) {
      hideTip();
      return;
    }
    const box = this.canvas.element.getBoundingClientRect(), middle = percentile(point.edges, point.counts, 0.5);
    const total = point.counts.reduce((a, b) => a + b, 0);
    const rows = [["step", short(point.step)], ["values", short(total)], ["smallest", short(point.edges[0])], ["median", short(middle)],
                  ["largest", short(point.edges.at(-1))], ...(more ? [["here", more]] : [])];
    showTip(make("table", {}, ...rows.map(([name, text]) => make("tr", {}, make("td", {}, name), make("td", {}, text)))),
      event?.clientX ?? box.left + 40, event?.clientY ?? box.top + 30);
  }

  key(event) {
    const way = { ArrowUp: -1, ArrowLeft: -1, ArrowDown: 1, ArrowRight: 1 }[event.key], { shown } = this;
    if (!way || !shown.length) return;
    event.preventDefault();
    const at = this.chosen ? shown.indexOf(this.chosen) : way > 0 ? -1 : shown.length;
    this.choose(shown[Math.min(Math.max(at + way, 0), shown.length - 1)]);
  }

  repaint() {
    this.draw();
  }
  stop() {
    this.canvas.stop();
  }
}

export class Histograms extends CardView {
  constructor(main, board) {
    super(main, board, "histograms", HistogramCard);
    this.mode = saved.get("histograms", "offset");
    this.bar.append(make("span", { className: "field" }, "Show", segments("Form", [["offset", "Offset"], ["overlay", "Overlay"], ["bands", "Distribution"]],
      this.mode, (mode) => {
        this.mode = mode;
        saved.set("histograms", mode);
        this.repaint();
      })));
  }
}
