// A chart of lines: hover with the values of all lines, zoom by dragging, arrow keys.
import { Canvas, drawAxes, roomy, Scale, tickText, timeTicks } from "./plot.js";
import { cssColour, hideTip, make, short, showTip } from "./util.js";

const LEFT = 52, RIGHT = 10, TOP = 8, BOTTOM = 24;

// The place in a sorted list that is nearest to a value. Steps of a run that begins again are not sorted; then all are compared.
function nearest(list, value, sorted) {
  if (!sorted) {
    let best = 0;
    for (let i = 1; i < list.length; i++) if (Math.abs(list[i] - value) < Math.abs(list[best] - value)) best = i;
    return best;
  }
  let low = 0, high = list.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (list[middle] <= value) low = middle;
    else high = middle;
  }
  return Math.abs(list[low] - value) <= Math.abs(list[high] - value) ? low : high;
}

export class LineChart {
  // lines: {name, colour, x, y, raw?, dash?, silent?: only drawn}; options: {height, label, xKind, log, fixed, tip(line, index) -> cells, head}
  constructor(parent, options) {
    this.options = options;
    this.lines = this.told = [];
    this.zoom = null;
    this.drag = null;
    this.cursor = null;
    this.canvas = new Canvas(parent, options.height, () => this.draw());
    const element = this.canvas.element;
    element.setAttribute("role", "img");
    element.setAttribute("aria-label", `${options.label}. Arrow keys read values, drag zooms, Escape shows all.`);
    element.addEventListener("pointermove", (event) => this.move(event));
    element.addEventListener("pointerleave", () => this.leave());
    element.addEventListener("pointerdown", (event) => this.begin(event));
    element.addEventListener("pointerup", (event) => this.end(event));
    element.addEventListener("dblclick", () => this.reset());
    element.addEventListener("keydown", (event) => this.key(event));
    element.addEventListener("blur", () => this.leave());
  }

  set(lines, options = {}) {
    Object.assign(this.options, options);
    for (const line of lines) line.sorted = line.x.every((v, i) => i === 0 || line.x[i - 1] <= v);
    this.lines = lines;
    this.told = lines.filter((line) => !line.silent && line.x.length);
    this.draw();
  }

  reset() {
    this.zoom = null;
    this.draw();
  }

  ranges() {
    const { log, fixed, outliers } = this.options;
    if (fixed && !this.zoom) return fixed;
    let [x0, x1] = this.zoom?.x ?? [Infinity, -Infinity], y0 = Infinity, y1 = -Infinity;
    if (!this.zoom) {
      for (const { x } of this.lines) for (const v of x) {
        if (v < x0) x0 = v;
        if (v > x1) x1 = v;
      }
      if (x0 === x1) [x0, x1] = [x0 - 1, x1 + 1];
    }
    if (this.zoom?.y) return { x: [x0, x1], y: this.zoom.y };
    const all = [];
    for (const { x, y, raw } of this.lines) for (const values of raw && !outliers ? [y, raw] : [y]) {
      for (let i = 0; i < x.length; i++) {
        const v = values[i];
        if (x[i] < x0 || x[i] > x1 || !Number.isFinite(v) || (log && v <= 0)) continue;
        if (outliers) all.push(v);
        if (v < y0) y0 = v;
        if (v > y1) y1 = v;
      }
    }
    if (outliers && all.length > 20) {
      all.sort((a, b) => a - b);
      y0 = all[Math.floor(all.length * 0.02)];
      y1 = all[Math.ceil(all.length * 0.98) - 1];
    }
    return { x: [x0, x1], y: roomy(y0, y1, log) };
  }

  draw() {
    const { canvas } = this;
    if (!canvas?.context) return;
    canvas.clear();
    if (!this.lines.some((line) => line.x.length)) return;
    const { x, y } = this.ranges();
    this.x = new Scale(...x, LEFT, canvas.width - RIGHT);
    this.y = new Scale(...y, canvas.height - BOTTOM, TOP, this.options.log);
    const { xKind } = this.options, timed = xKind === "wall" || xKind === "relative";
    drawAxes(canvas, this.x, this.y, { xText: tickText(xKind, x[1] - x[0]),
                                       xTicks: timed ? timeTicks(...x, (this.x.to - LEFT) / 66, xKind === "wall") : undefined });
    const c = canvas.context;
    c.save();
    c.beginPath();
    c.rect(LEFT, TOP, this.x.to - LEFT, this.y.from - TOP);
    c.clip();
    for (const line of this.lines) {
      if (line.raw) this.stroke(line, line.raw, 1, 0.32);
      this.stroke(line, line.y, 1.7, 1);
    }
    canvas.element.dataset.drawn = this.lines.length;
    if (this.drag?.moved) this.drawDrag(c);
    if (this.cursor !== null) this.drawCursor(c);
    c.restore();
  }

  stroke(line, values, width, alpha) {
    const c = this.canvas.context, { x } = line;
    c.strokeStyle = c.fillStyle = line.colour;
    c.lineWidth = width;
    c.globalAlpha = alpha;
    c.setLineDash(line.dash ?? []);
    c.beginPath();
    let open = false, points = 0, lastX = 0, lastY = 0;
    for (let i = 0; i < x.length; i++) {
      const v = values[i];
      if (!Number.isFinite(v) || (this.options.log && v <= 0)) {
        open = false;
        continue;
      }
      lastX = this.x.at(x[i]);
      lastY = this.y.at(v);
      if (open) c.lineTo(lastX, lastY);
      else c.moveTo(lastX, lastY);
      open = true;
      points++;
    }
    c.stroke();
    c.setLineDash([]);
    if (points === 1) {
      c.beginPath();
      c.arc(lastX, lastY, 3, 0, 7);
      c.fill();
    }
    if (alpha === 1) for (let i = 0; i < x.length; i++) if (!Number.isFinite(values[i])) this.cross(this.x.at(x[i]));
    c.globalAlpha = 1;
    c.lineWidth = 1;
  }

  // Where a value is not a number.
  cross(at) {
    const c = this.canvas.context, y = this.y.from - 7;
    c.beginPath();
    c.moveTo(at - 3, y - 3);
    c.lineTo(at + 3, y + 3);
    c.moveTo(at + 3, y - 3);
    c.lineTo(at - 3, y + 3);
    c.stroke();
  }

  drawDrag(c) {
    const { from, to, tall } = this.drag;
    c.fillStyle = cssColour("--accent");
    c.globalAlpha = 0.14;
    if (tall) c.fillRect(from[0], from[1], to[0] - from[0], to[1] - from[1]);
    else c.fillRect(from[0], TOP, to[0] - from[0], this.y.from - TOP);
    c.globalAlpha = 1;
  }

  drawCursor(c) {
    const at = Math.round(this.x.at(this.cursor)) + 0.5;
    c.strokeStyle = cssColour("--faint");
    c.beginPath();
    c.moveTo(at, TOP);
    c.lineTo(at, this.y.from);
    c.stroke();
    for (const line of this.told) {
      const i = this.indexAt(line);
      if (!Number.isFinite(line.y[i])) continue;
      c.fillStyle = line.colour;
      c.beginPath();
      c.arc(this.x.at(line.x[i]), this.y.at(line.y[i]), 3.5, 0, 7);
      c.fill();
    }
  }

  indexAt(line) {
    return nearest(line.x, this.cursor, line.sorted);
  }

  place(event) {
    const box = this.canvas.element.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  begin(event) {
    if (event.button !== 0 || !this.x) return;
    this.drag = { from: this.place(event), to: this.place(event), moved: false };
    this.canvas.element.setPointerCapture(event.pointerId);
  }

  move(event) {
    if (!this.x) return;
    const at = this.place(event);
    if (this.drag) {
      this.drag.to = at;
      this.drag.moved ||= Math.abs(at[0] - this.drag.from[0]) > 4;
      this.drag.tall = Math.abs(at[1] - this.drag.from[1]) > 24;
    }
    this.cursor = this.x.inverse(Math.min(Math.max(at[0], LEFT), this.x.to));
    this.snap();
    this.draw();
    if (!this.drag?.moved) this.tell(event.clientX, event.clientY, this.y.inverse(at[1]));
    else hideTip();
  }

  // The cursor stands on the nearest point of any line.
  snap() {
    let best = null;
    for (const line of this.told) {
      const i = this.indexAt(line);
      if (best === null || Math.abs(line.x[i] - this.cursor) < Math.abs(best - this.cursor)) best = line.x[i];
    }
    if (best !== null) this.cursor = best;
  }

  end(event) {
    const drag = this.drag;
    this.drag = null;
    if (!drag?.moved) return;
    const [a, b] = [this.x.inverse(drag.from[0]), this.x.inverse(drag.to[0])].sort((p, q) => p - q);
    const [d, e] = [this.y.inverse(drag.from[1]), this.y.inverse(drag.to[1])].sort((p, q) => p - q);
    this.zoom = { x: [a, b], y: drag.tall ? [d, e] : null };
    this.draw();
    this.options.zoomed?.(this.zoom);
  }

  leave() {
    if (this.drag) return;
    this.cursor = null;
    hideTip();
    if (this.x) this.draw();
  }

  key(event) {
    if (event.key === "Escape") {
      this.reset();
      this.leave();
      return;
    }
    const way = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
    if (!way || !this.x || !this.told.length) return;
    event.preventDefault();
    const line = this.told.reduce((a, b) => b.x.length > a.x.length ? b : a);
    const shown = line.x.map((v, i) => i).filter((i) => line.x[i] >= this.x.low && line.x[i] <= this.x.high);
    const now = this.cursor === null ? -1 : shown.indexOf(nearest(line.x, this.cursor, line.sorted));
    const skip = event.shiftKey ? 10 : 1;
    this.cursor = line.x[shown[Math.min(Math.max(now + way * skip, 0), shown.length - 1)]];
    this.draw();
    const box = this.canvas.element.getBoundingClientRect();
    this.tell(box.left + this.x.at(this.cursor), box.top + 20, null);
  }

  tell(x, y, height) {
    const rows = this.told.map((line) => ({ line, i: this.indexAt(line) }));
    if (!rows.length) return;
    const far = ({ line, i }) => Math.abs(this.y.at(line.y[i]) - this.y.at(height));
    const closest = height === null ? null : rows.reduce((a, b) => far(b) < far(a) ? b : a);
    rows.sort((a, b) => b.line.y[b.i] - a.line.y[a.i]);
    const most = 16, cells = this.options.tip ?? ((line, i) => [short(line.y[i]), short(line.x[i])]);
    const shown = rows.length > most ? [...new Set([closest, ...rows])].filter(Boolean).slice(0, most) : rows;
    const body = shown.map((row) => make("tr", { className: row === closest ? "near" : "" },
      make("td", {}, make("i", { className: "dot", style: { "--c": row.line.colour } }), row.line.name),
      ...cells(row.line, row.i).map((text) => make("td", {}, text))));
    if (rows.length > shown.length) body.push(make("tr", {}, make("td", {}, `and ${rows.length - shown.length} more`)));
    const head = make("tr", {}, ...(this.options.head ?? ["", "Value", "x"]).map((text) => make("th", {}, text)));
    showTip(make("table", {}, head, ...body), x, y);
  }

  stop() {
    this.canvas.stop();
  }
}
