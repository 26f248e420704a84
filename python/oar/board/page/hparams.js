// Hyper-parameters: a table, parallel coordinates, and one quantity over another.
import { ask } from "./net.js";
import { Canvas, drawAxes, niceTicks, roomy, Scale } from "./plot.js";
import { cssColour, hideTip, make, numberOf, ramp, RAMP_CSS, saved, segments, short, showTip } from "./util.js";

// A column: where a value lies between 0 and 1, and how it is written.
class Column {
  constructor(name, metric, values) {
    Object.assign(this, { name, metric, values });
    const present = values.filter((v) => v !== undefined);
    this.numeric = present.length > 0 && present.every((v) => typeof v === "number");
    if (this.numeric) {
      const finite = present.filter(Number.isFinite);
      [this.low, this.high] = [Math.min(...finite), Math.max(...finite)];
      // Learning rates and the like lie evenly on a logarithmic axis.
      this.log = !metric && this.low > 0 && this.high / this.low >= 50;
    } else {
      this.kinds = [...new Set(present.map(String))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    }
  }
  scale(from, to) {
    if (!this.numeric) return (v) => from + (this.kinds.length > 1 ? this.kinds.indexOf(String(v)) / (this.kinds.length - 1) : 0.5) * (to - from);
    const scale = this.low === this.high ? new Scale(...roomy(this.low, this.high), from, to) : new Scale(this.low, this.high, from, to, this.log);
    return (v) => scale.at(v);
  }
  get ticks() {
    if (!this.numeric) return this.kinds;
    if (this.low === this.high) return [this.low];
    if (this.log) return [...new Set([this.low, Math.sqrt(this.low * this.high), this.high])];
    return niceTicks(this.low, this.high, 4);
  }
}

export class Hparams {
  constructor(main, board) {
    this.board = board;
    this.main = main;
    this.sort = { name: "", down: false };
    this.form = saved.get("hparams", "table");
    this.body = make("div");
    this.byMetric = make("select", { "aria-label": "Colour by" });
    this.byMetric.addEventListener("change", () => this.render());
    this.xChoice = make("select", { "aria-label": "Horizontal axis" });
    this.yChoice = make("select", { "aria-label": "Vertical axis" });
    for (const choice of [this.xChoice, this.yChoice]) choice.addEventListener("change", () => this.draw());
    this.axes = make("span", { className: "field" }, "Horizontal", this.xChoice, "Vertical", this.yChoice);
    main.append(make("div", { className: "toolbar" },
      segments("Form", [["table", "Table"], ["parallel", "Parallel coordinates"], ["scatter", "Scatter"]], this.form, (form) => {
        this.form = form;
        saved.set("hparams", form);
        this.render();
      }), make("label", {}, "Colour by", this.byMetric), make("span", { className: "ramp", style: { background: RAMP_CSS, "max-width": "140px" } }),
      this.range = make("span", { className: "soft" }), this.axes), this.body);
  }

  async update() {
    try {
      this.data = await ask("hparams");
    } catch (error) {
      this.body.replaceChildren(make("div", { className: "note" }, error.message));
      return;
    }
    const { names, metrics } = this.data;
    this.rows = this.data.rows.filter((row) => this.board.shown(row.run));
    const pick = (row, metric, name) => {
      const value = (metric ? row.metrics : row.values)[name];
      return metric && value !== undefined ? numberOf(value) : value;
    };
    this.columns = [...names.map((name) => [name, false]), ...metrics.map((name) => [name, true])].map(([name, metric]) =>
      new Column(name, metric, this.rows.map((row) => pick(row, metric, name))));
    const fill = (select, columns, otherwise) => {
      const before = select.value;
      select.replaceChildren(...columns.map((column) => make("option", { value: column.name }, column.name)));
      select.value = columns.some((column) => column.name === before) ? before : otherwise ?? columns[0]?.name ?? "";
    };
    const numeric = this.columns.filter((column) => column.numeric);
    fill(this.byMetric, numeric, numeric.find((column) => column.metric)?.name);
    fill(this.xChoice, this.columns, numeric.find((column) => !column.metric)?.name ?? names[0]);
    fill(this.yChoice, this.columns, metrics[0] ?? names[1]);
    this.render();
  }

  column(name) {
    return this.columns.find((column) => column.name === name);
  }

  tint(i) {
    const column = this.column(this.byMetric.value), value = column?.values[i];
    if (value === undefined || !Number.isFinite(value)) return cssColour("--faint");
    return ramp(column.scale(0, 1)(value));
  }

  render() {
    if (!this.columns) return;
    const column = this.column(this.byMetric.value);
    this.range.textContent = column ? `${short(column.low)} to ${short(column.high)}` : "";
    this.axes.hidden = this.form !== "scatter";
    this.canvas?.stop();
    this.canvas = null;
    hideTip();
    if (this.form === "table") {
      this.table();
      return;
    }
    const card = make("section", { className: "card" });
    this.body.replaceChildren(card);
    this.canvas = new Canvas(card, Math.max(380, innerHeight - 240), () => this.draw());
    const element = this.canvas.element;
    element.setAttribute("role", "img");
    element.setAttribute("aria-label", "Runs by hyper-parameters. The table has the same numbers.");
    element.addEventListener("pointermove", (event) => this.hover(event));
    element.addEventListener("pointerleave", () => { this.hot = null; hideTip(); this.draw(); });
    this.draw();
  }

  table() {
    const order = this.rows.map((_, i) => i), { name, down } = this.sort, column = this.column(name);
    const valueOf = (i) => column ? column.values[i] : this.board.display(this.rows[i].run);
    const compare = (a, b) => a === undefined ? 1 : b === undefined ? -1 : typeof a === "number" && typeof b === "number"
      ? (Number.isNaN(a) ? 1 : Number.isNaN(b) ? -1 : (a - b) * (down ? -1 : 1)) : String(a).localeCompare(String(b), "en", { numeric: true }) * (down ? -1 : 1);
    order.sort((i, k) => compare(valueOf(i), valueOf(k)));
    const head = (title, key, text, metric) => {
      const sorted = this.sort.name === key;
      const cell = make("th", { className: `${text ? "text" : ""} ${metric ? "metric" : ""}`, scope: "col" }, make("button", { type: "button", title: `Sort by ${title}`, onclick: () => {
        this.sort = { name: key, down: sorted && !down };
        this.table();
        this.body.querySelectorAll("th button")[key === "" ? 0 : 1 + this.columns.findIndex((c) => c.name === key)].focus();
      } }, title + (sorted ? (down ? " ↓" : " ↑") : "")));
      if (sorted) cell.setAttribute("aria-sort", down ? "descending" : "ascending");
      return cell;
    };
    const show = (value) => value === undefined ? "–" : typeof value === "number" ? short(value, 5) : String(value);
    const best = (i, c) => c.metric && c.numeric ? make("i", { className: "dot", style: { "--c": c.name === this.byMetric.value ? this.tint(i) : "transparent" } }) : null;
    this.body.replaceChildren(make("section", { className: "card" }, make("div", { className: "scroll", tabIndex: 0 }, make("table", { className: "data" },
      make("thead", {}, make("tr", {}, head("Run", "", true), ...this.columns.map((c) => head(c.name, c.name, !c.numeric, c.metric)))),
      make("tbody", {}, ...order.map((i) => make("tr", {},
        make("td", { className: "text" }, make("i", { className: "dot", style: { "--c": this.board.colour(this.rows[i].run) } }), this.board.display(this.rows[i].run)),
        ...this.columns.map((c) => make("td", { className: `${c.numeric ? "" : "text"} ${c.metric ? "metric" : ""}` }, best(i, c), show(c.values[i]))))))))));
  }

  draw() {
    if (!this.canvas?.context || !this.columns) return;
    this.canvas.clear();
    if (this.form === "parallel") this.parallel();
    else this.scatter();
  }

  parallel() {
    const { canvas, columns } = this, c = canvas.context, top = 46, bottom = canvas.height - 22, left = 76, right = canvas.width - 76;
    const at = (k) => columns.length > 1 ? left + k / (columns.length - 1) * (right - left) : (left + right) / 2;
    const scales = columns.map((column) => column.scale(bottom, top));
    this.shapes = this.rows.map((row, i) => columns.map((column, k) => column.values[i] === undefined || Number.isNaN(column.values[i]) ? null : [at(k), scales[k](column.values[i])]));
    const order = this.rows.map((_, i) => i).sort((a) => a === this.hot ? 1 : 0);
    for (const i of [...order.filter((i) => i !== this.hot), ...(this.hot !== null && this.hot !== undefined ? [this.hot] : [])]) {
      c.strokeStyle = this.tint(i);
      c.lineWidth = i === this.hot ? 3 : 1.6;
      c.globalAlpha = this.hot === null || this.hot === undefined ? 0.8 : i === this.hot ? 1 : 0.18;
      c.beginPath();
      let open = false;
      this.shapes[i].forEach((p, k) => {
        if (!p) { open = false; return; }
        const q = this.shapes[i][k - 1];
        if (open) c.bezierCurveTo((q[0] + p[0]) / 2, q[1], (q[0] + p[0]) / 2, p[1], p[0], p[1]);
        else c.moveTo(...p);
        open = true;
      });
      c.stroke();
    }
    c.globalAlpha = 1;
    c.lineWidth = 1;
    columns.forEach((column, k) => {
      c.strokeStyle = cssColour("--faint");
      c.beginPath();
      c.moveTo(at(k), top);
      c.lineTo(at(k), bottom);
      c.stroke();
      c.fillStyle = cssColour(column.metric ? "--accent" : "--ink");
      c.textAlign = "center";
      c.textBaseline = "bottom";
      c.font = '600 12px system-ui, -apple-system, "Segoe UI", sans-serif';
      const room = columns.length > 1 ? (right - left) / (columns.length - 1) - 8 : 300;
      let title = column.name;
      while (c.measureText(title).width > room && title.length > 4) title = `${title.slice(0, -2)}…`.replace("……", "…");
      c.fillText(title, at(k), k % 2 && columns.length > 6 ? top - 28 : top - 12);
      c.font = '11px system-ui, -apple-system, "Segoe UI", sans-serif';
      c.textAlign = "left";
      c.textBaseline = "middle";
      for (const tick of column.ticks) {
        const text = typeof tick === "number" ? short(tick, 3) : tick.slice(0, 18), y = scales[k](tick), width = c.measureText(text).width;
        c.fillStyle = cssColour("--card");
        c.globalAlpha = 0.8;
        c.fillRect(at(k) + 4, y - 7, width + 4, 14);
        c.globalAlpha = 1;
        c.fillStyle = cssColour("--soft");
        c.fillText(text, at(k) + 6, y);
      }
    });
  }

  scatter() {
    const { canvas } = this, c = canvas.context, xc = this.column(this.xChoice.value), yc = this.column(this.yChoice.value);
    if (!xc || !yc) return;
    const left = 64, bottom = canvas.height - 40, xs = xc.scale(left + 24, canvas.width - 34), ys = yc.scale(bottom - 20, 26);
    c.fillStyle = cssColour("--faint");
    const flat = new Scale(0, 1, left, canvas.width - 12), tall = new Scale(0, 1, bottom, 12);
    drawAxes(canvas, flat, tall, { xTicks: [], yTicks: [] });
    c.strokeStyle = cssColour("--grid");
    c.fillStyle = cssColour("--faint");
    c.beginPath();
    c.textAlign = "center";
    c.textBaseline = "top";
    for (const tick of xc.ticks) {
      c.fillText(typeof tick === "number" ? short(tick, 3) : tick.slice(0, 14), xs(tick), bottom + 5);
      c.moveTo(xs(tick), bottom);
      c.lineTo(xs(tick), 12);
    }
    c.textAlign = "right";
    c.textBaseline = "middle";
    for (const tick of yc.ticks) {
      c.fillText(typeof tick === "number" ? short(tick, 3) : tick.slice(0, 10), left - 6, ys(tick));
      c.moveTo(left, ys(tick));
      c.lineTo(canvas.width - 12, ys(tick));
    }
    c.stroke();
    c.fillStyle = cssColour("--soft");
    c.textAlign = "center";
    c.fillText(xc.name + (xc.log ? " (logarithmic)" : ""), (left + canvas.width) / 2, canvas.height - 9);
    c.save();
    c.translate(10, bottom / 2);
    c.rotate(-Math.PI / 2);
    c.fillText(yc.name + (yc.log ? " (logarithmic)" : ""), 0, 0);
    c.restore();
    this.shapes = this.rows.map((_, i) => {
      const x = xc.values[i], y = yc.values[i];
      return x === undefined || y === undefined || Number.isNaN(x) || Number.isNaN(y) ? [] : [[xs(x), ys(y)]];
    });
    this.shapes.forEach(([p], i) => {
      if (!p) return;
      c.fillStyle = this.tint(i);
      c.globalAlpha = this.hot === i ? 1 : 0.85;
      c.beginPath();
      c.arc(...p, this.hot === i ? 8 : 6, 0, 7);
      c.fill();
    });
    c.globalAlpha = 1;
  }

  hover(event) {
    if (!this.shapes) return;
    const box = this.canvas.element.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
    let best = null, far = 14;
    this.shapes.forEach((points, i) => points.forEach((p, k) => {
      if (!p) return;
      const q = points[k + 1];
      let d = Math.hypot(p[0] - px, p[1] - py);
      if (q && px >= p[0] && px <= q[0]) d = Math.min(d, Math.abs(p[1] + (q[1] - p[1]) * (px - p[0]) / (q[0] - p[0]) - py));
      if (d < far) [best, far] = [i, d];
    }));
    if (best !== this.hot) {
      this.hot = best;
      this.draw();
    }
    if (best === null) {
      hideTip();
      return;
    }
    const cell = (value) => value === undefined ? "–" : typeof value === "number" ? short(value, 5) : String(value);
    showTip(make("table", {}, make("tr", { className: "near" }, make("td", {}, this.board.display(this.rows[best].run))),
      ...this.columns.map((column) => make("tr", {}, make("td", {}, column.name), make("td", {}, cell(column.values[best]))))), event.clientX, event.clientY);
  }

  repaint() {
    if (this.form === "table") this.render();
    else this.draw();
  }
  stop() {
    this.canvas?.stop();
    hideTip();
  }
}
