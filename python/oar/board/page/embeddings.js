// Embeddings: principal components in two or three dimensions, labels, neighbours.
import { ask } from "./net.js";
import { Canvas } from "./plot.js";
import { colour, cssColour, hideTip, make, matcher, ramp, RAMP_CSS, saved, segments, short, showTip } from "./util.js";

export class Embeddings {
  constructor(main, board) {
    this.board = board;
    this.axes = [0, 1, 2];
    this.turn = [0.5, -0.35];
    this.zoomed = 1;
    this.shift = [0, 0];
    this.chosen = null;
    this.near = [];
    this.hits = null;
    this.dimensions = saved.get("dimensions", "3");
    this.choice = make("select", { "aria-label": "Embedding" });
    this.choice.addEventListener("change", () => this.load());
    this.byLabel = make("select", { "aria-label": "Colour by" });
    this.byLabel.addEventListener("change", () => { this.colours(); this.draw(); });
    this.search = make("input", { type: "search", className: "find", placeholder: "Find labels (regular expression)", "aria-label": "Find labels" });
    this.search.addEventListener("input", () => this.find());
    this.names = make("input", { type: "checkbox", checked: saved.get("names", false) });
    this.names.addEventListener("change", () => { saved.set("names", this.names.checked); this.draw(); });
    this.components = make("span", { className: "field" });
    main.append(make("div", { className: "toolbar dense" }, this.choice, this.search,
      segments("Dimensions", [["2", "2-d"], ["3", "3-d"]], this.dimensions, (value) => {
        this.dimensions = value;
        saved.set("dimensions", value);
        this.axisChoices();
        this.draw();
      }), make("label", {}, "Colour by", this.byLabel), this.components, make("label", {}, this.names, "Labels"),
      make("button", { type: "button", className: "icon", title: "Reset view", "aria-label": "Reset view", onclick: () => this.home() }, "↺")));
    this.note = make("div", { className: "note", hidden: true });
    this.panel = make("div", { className: "panel" });
    this.stage = make("div", { className: "stage" });
    main.append(this.note, make("div", { className: "pair" }, this.stage, this.panel));
    this.canvas = new Canvas(this.stage, "100%", () => this.draw());
    this.canvas.element.setAttribute("role", "img");
    this.canvas.element.setAttribute("aria-label", "Points of the embedding. Arrow keys turn or move them, plus and minus zoom. The list beside it finds points by name.");
    this.metric = saved.get("metric", "cosine");
    this.hands();
  }

  hands() {
    const element = this.canvas.element;
    let from = null, moved = false;
    element.addEventListener("pointerdown", (event) => {
      from = [event.clientX, event.clientY, event.shiftKey || event.button === 2];
      moved = false;
      element.setPointerCapture(event.pointerId);
    });
    element.addEventListener("contextmenu", (event) => event.preventDefault());
    element.addEventListener("pointermove", (event) => {
      if (!from) {
        this.hover(event);
        return;
      }
      const dx = event.clientX - from[0], dy = event.clientY - from[1];
      moved ||= Math.hypot(dx, dy) > 3;
      if (!moved) return;
      hideTip();
      this.stage.classList.add("moving");
      this.push(dx, dy, from[2]);
      from = [event.clientX, event.clientY, from[2]];
    });
    element.addEventListener("pointerup", (event) => {
      this.stage.classList.remove("moving");
      if (from && !moved) this.choose(this.under(event));
      from = null;
    });
    element.addEventListener("pointerleave", () => hideTip());
    element.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoomed = Math.min(Math.max(this.zoomed * Math.exp(-event.deltaY * 0.0015), 0.2), 60);
      this.draw();
    }, { passive: false });
    element.addEventListener("keydown", (event) => {
      const way = { ArrowLeft: [-20, 0], ArrowRight: [20, 0], ArrowUp: [0, -20], ArrowDown: [0, 20] }[event.key];
      if (way) this.push(...way, event.shiftKey);
      else if (event.key === "+" || event.key === "=") this.zoomed *= 1.2;
      else if (event.key === "-") this.zoomed /= 1.2;
      else if (event.key === "Escape") this.choose(null);
      else return;
      event.preventDefault();
      this.draw();
    });
  }

  push(dx, dy, move) {
    if (this.dimensions === "3" && !move) {
      this.turn = [this.turn[0] + dx * 0.008, Math.min(Math.max(this.turn[1] + dy * 0.008, -1.57), 1.57)];
    } else {
      this.shift = [this.shift[0] + dx, this.shift[1] + dy];
    }
    this.draw();
  }

  home() {
    this.turn = [0.5, -0.35];
    this.zoomed = 1;
    this.shift = [0, 0];
    this.draw();
  }

  update() {
    const options = this.board.tagsOf("embeddings").flatMap(([tag, runs]) => runs.map((run) => [run, tag]));
    const before = this.choice.value;
    this.choice.replaceChildren(...options.map(([run, tag]) => make("option", { value: JSON.stringify([run, tag]) }, `${this.board.display(run)}: ${tag}`)));
    if ([...this.choice.options].some((option) => option.value === before)) this.choice.value = before;
    if (!options.length) {
      this.say("Every run with an embedding is hidden.");
      this.loaded = this.data = null;
      this.canvas.clear();
    } else if (this.choice.value !== this.loaded) {
      this.load();
    }
  }

  say(text) {
    this.note.hidden = !text;
    this.note.textContent = text;
  }

  async load() {
    this.loaded = this.choice.value;
    const [run, tag] = JSON.parse(this.loaded);
    try {
      const data = await ask("embedding", { run, tag });
      if (this.choice.value !== JSON.stringify([run, tag])) return;
      this.data = data;
    } catch (error) {
      this.say(error.message);
      return;
    }
    const { points, total, header, labels } = this.data;
    this.say(points.length < total ? `${points.length.toLocaleString("en")} of ${total.toLocaleString("en")} vectors are shown, evenly chosen.` : "");
    const columns = Math.max(0, ...labels.slice(0, 100).map((row) => row.length));
    this.byLabel.replaceChildren(make("option", { value: "" }, "nothing"),
      ...Array.from({ length: columns }, (_, i) => make("option", { value: i }, header[i] || (columns > 1 ? `label ${i + 1}` : "label"))));
    this.chosen = null;
    this.near = [];
    if (columns) this.byLabel.value = this.bestColumn(columns);
    this.axisChoices();
    this.colours();
    this.find();
    this.home();
  }

  // The column of labels that divides the points into few groups.
  bestColumn(columns) {
    const groups = (i) => new Set(this.data.labels.map((row) => row[i])).size;
    const all = Array.from({ length: columns }, (_, i) => i);
    return all.find((i) => groups(i) > 1 && groups(i) <= 20) ?? 0;
  }

  axisChoices() {
    if (!this.data) return;
    const { variance } = this.data, count = this.dimensions === "3" ? 3 : 2;
    this.components.replaceChildren("Components", ...Array.from({ length: Math.min(count, variance.length) }, (_, k) => {
      const select = make("select", { "aria-label": `Component of axis ${"xyz"[k]}` },
        ...variance.map((part, i) => make("option", { value: i }, `${i + 1} (${Math.round(100 * part)} %)`)));
      select.value = this.axes[k];
      select.addEventListener("change", () => { this.axes[k] = +select.value; this.draw(); });
      return select;
    }));
  }

  colours() {
    const column = this.byLabel.value, { labels } = this.data;
    this.legend = [];
    if (column === "") {
      this.colourOf = () => colour(0);
    } else {
      const values = labels.map((row) => row[+column] ?? ""), kinds = [...new Set(values)];
      const numbers = values.map(Number), low = Math.min(...numbers), high = Math.max(...numbers);
      if (kinds.length > 20 && values.every((v) => v !== "" && Number.isFinite(Number(v)))) {
        this.colourOf = (i) => ramp((numbers[i] - low) / (high - low || 1));
        this.legend = [low, high];
      } else if (kinds.length > 50) {
        this.colourOf = () => colour(0);
      } else {
        kinds.sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
        const places = new Map(kinds.map((kind, i) => [kind, i]));
        this.colourOf = (i) => colour(places.get(values[i]));
        this.legend = kinds;
      }
    }
    this.list();
  }

  name(i) {
    return this.data.labels[i]?.[0] || `vector ${i}`;
  }
  whole(i) {
    return this.data.labels[i]?.join(" · ") || this.name(i);
  }

  find() {
    const keeps = this.search.value ? matcher(this.search.value) : null;
    this.search.classList.toggle("wrong", Boolean(this.search.value) && !keeps);
    this.hits = keeps && this.data ? new Set(this.data.points.map((_, i) => i).filter((i) => keeps(this.whole(i)))) : null;
    this.list();
    this.draw();
  }

  async choose(i) {
    this.chosen = i;
    this.near = [];
    this.list();
    this.draw();
    if (i === null) return;
    const [run, tag] = JSON.parse(this.loaded);
    try {
      this.near = await ask("neighbours", { run, tag, index: i, count: 20, metric: this.metric });
    } catch (error) {
      this.say(error.message);
    }
    this.list();
    this.draw();
  }

  list() {
    if (!this.data) return;
    const entry = (i, text) => make("li", {}, make("button", { type: "button", onclick: () => this.choose(i) },
      make("span", {}, make("i", { className: "dot", style: { "--c": this.colourOf(i) } }), this.name(i)), make("span", { className: "num" }, text)));
    const { points, size } = this.data, parts = [];
    if (this.chosen !== null) {
      parts.push(make("h2", {}, this.whole(this.chosen)), make("div", { className: "row" }, make("span", { className: "soft" }, "Nearest by"),
        segments("Distance", [["cosine", "Cosine"], ["euclidean", "Euclidean"]], this.metric, (metric) => {
          this.metric = metric;
          saved.set("metric", metric);
          this.choose(this.chosen);
        }), make("button", { type: "button", onclick: () => this.choose(null) }, "Close")),
        make("ul", {}, ...this.near.map(([i, distance]) => entry(i, short(distance, 3)))));
    } else if (this.hits) {
      parts.push(make("h2", {}, `${this.hits.size.toLocaleString("en")} found`), make("ul", {}, ...[...this.hits].slice(0, 200).map((i) => entry(i, ""))));
    } else {
      parts.push(make("h2", {}, `${points.length.toLocaleString("en")} vectors of ${size} numbers`),
        make("p", { className: "soft" }, this.dimensions === "3" ? "Drag turns, Shift-drag moves, the wheel zooms. Click a point for its neighbours."
          : "Drag moves, the wheel zooms. Click a point for its neighbours."));
      if (typeof this.legend?.[0] === "number") {
        parts.push(make("div", { className: "row" }, short(this.legend[0]), make("span", { className: "ramp", style: { background: RAMP_CSS } }), short(this.legend[1])));
      } else if (this.legend?.length) {
        parts.push(make("div", { className: "legend" }, ...this.legend.map((kind, i) => make("span", {}, make("i", { className: "dot", style: { "--c": colour(i) } }), kind || "none"))));
      }
    }
    this.panel.replaceChildren(...parts);
  }

  // Where each point is on the canvas, and how near.
  project() {
    const { width, height } = this.canvas, size = Math.min(width, height) * 0.42 * this.zoomed;
    const [a, b, d] = this.axes, [sy, cy, sx, cx] = [Math.sin(this.turn[0]), Math.cos(this.turn[0]), Math.sin(this.turn[1]), Math.cos(this.turn[1])];
    const deep = this.dimensions === "3";
    return this.data.points.map((p) => {
      let x = p[a] ?? 0, y = p[b] ?? 0, z = deep ? p[d] ?? 0 : 0;
      if (deep) {
        [x, z] = [x * cy + z * sy, z * cy - x * sy];
        [y, z] = [y * cx - z * sx, z * cx + y * sx];
      }
      const near = deep ? 1 / (1 - z * 0.35) : 1;
      return [width / 2 + this.shift[0] + x * size * near, height / 2 + this.shift[1] - y * size * near, z, near];
    });
  }

  draw() {
    if (!this.canvas?.context || !this.data) return;
    this.canvas.clear();
    const c = this.canvas.context, places = this.placed = this.project();
    this.canvas.element.dataset.drawn = places.length;
    const lit = this.chosen !== null ? new Set([this.chosen, ...this.near.map(([i]) => i)]) : this.hits;
    const order = places.map((_, i) => i);
    if (this.dimensions === "3") order.sort((i, k) => places[i][2] - places[k][2]);
    const small = places.length > 3000 ? 2 : places.length > 500 ? 2.8 : 4;
    for (const i of order) {
      const [x, y, z, near] = places[i], on = !lit || lit.has(i);
      c.globalAlpha = on ? (this.dimensions === "3" ? 0.55 + 0.4 * (z + 1) / 2 : 0.85) : 0.1;
      c.fillStyle = this.colourOf(i);
      c.beginPath();
      c.arc(x, y, small * near * (lit && on ? 1.5 : 1), 0, 7);
      c.fill();
    }
    c.globalAlpha = 1;
    c.fillStyle = cssColour("--ink");
    c.textAlign = "left";
    c.textBaseline = "middle";
    if (this.chosen !== null) {
      const [x, y] = places[this.chosen];
      c.strokeStyle = cssColour("--ink");
      c.lineWidth = 2;
      c.beginPath();
      c.arc(x, y, small * 2.2, 0, 7);
      c.stroke();
    }
    const named = lit ? [...lit].slice(0, 40) : this.names.checked ? order.slice(-400) : [];
    const taken = [];
    for (const i of named) {  // a name that would cover another one is left out
      const text = this.name(i).slice(0, 40), left = places[i][0] + small + 4, top = places[i][1] - 6, right = left + c.measureText(text).width;
      if (taken.some(([l, t, r]) => l < right && r > left && Math.abs(t - top) < 12)) continue;
      taken.push([left, top, right]);
      c.fillText(text, left, places[i][1]);
    }
  }

  under(event) {
    if (!this.placed) return null;
    const box = this.canvas.element.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
    let best = null, far = 12;
    this.placed.forEach(([x, y], i) => {
      const d = Math.hypot(x - px, y - py);
      if (d < far) [best, far] = [i, d];
    });
    return best;
  }

  hover(event) {
    const i = this.under(event);
    if (i === null) hideTip();
    else showTip(make("div", {}, make("b", {}, this.whole(i))), event.clientX, event.clientY);
  }

  repaint() {
    this.draw();
  }
  stop() {
    this.canvas.stop();
    hideTip();
  }
}
