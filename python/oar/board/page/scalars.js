// Scalars: a chart for each tag, in groups.
import { LineChart } from "./lines.js";
import { ask, Gone } from "./net.js";
import { download, duration, filterBox, make, moment, numberOf, saved, segments, short, WhileVisible } from "./util.js";

// An exponential average without the bias of its beginning. What is not finite interrupts it.
export function smooth(values, weight) {
  if (!weight) return values;
  let last = 0, count = 0;
  return values.map((v) => {
    if (!Number.isFinite(v)) return v;
    last = last * weight + (1 - weight) * v;
    count++;
    return last / (1 - weight ** count);
  });
}

const quoted = (text) => /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;

class ScalarCard {
  constructor(view, tag) {
    this.view = view;
    this.tag = tag;
    this.data = null;
    this.log = saved.get(`log.${tag}`, false);
    this.element = make("section", { className: "card" });
    this.element.append(make("div", { className: "card-head" }, make("h3", {}, tag), ...this.buttons()));
    this.chart = new LineChart(this.element, {
      height: 220, label: `Scalar ${tag}`, head: ["Run", ...(view.weight ? ["Smoothed"] : []), "Value", "Step", "After", "At"],
      tip: (line, i) => [...(view.weight ? [short(line.y[i])] : []), short(line.values[i], 6), short(line.step[i]),
                         duration(line.wall[i] - line.wall[0]), moment(line.wall[i])],
    });
    view.visible.add(this.element, () => this.refresh());
  }

  buttons() {
    const log = make("button", { type: "button", className: "icon", title: "Logarithmic values", "aria-pressed": this.log }, "log");
    log.addEventListener("click", () => {
      this.log = !this.log;
      saved.set(`log.${this.tag}`, this.log);
      log.setAttribute("aria-pressed", this.log);
      this.chart.zoom = null;
      this.paint();
    });
    const wide = make("button", { type: "button", className: "icon", title: "Wider", "aria-pressed": false, "aria-label": "Wider" }, "⤢");
    wide.addEventListener("click", () => {
      const on = this.element.classList.toggle("wide");
      wide.setAttribute("aria-pressed", on);
      this.chart.canvas.holder.style.height = on ? "420px" : "220px";
    });
    const all = make("button", { type: "button", className: "icon", title: "Show everything (or double-click)", "aria-label": "Reset zoom",
                                 onclick: () => this.chart.reset() }, "↺");
    return [log, all, wide, this.menu()];
  }

  menu() {
    const list = make("div", { hidden: true }), button = make("button", {
      type: "button", className: "icon", title: "Download", "aria-label": `Download ${this.tag}`, "aria-expanded": false, "aria-haspopup": true }, "↓");
    const open = (on) => {
      list.hidden = !on;
      button.setAttribute("aria-expanded", on);
    };
    const entry = (text, action) => make("button", { type: "button", onclick: () => { open(false); action(); } }, text);
    list.append(entry("CSV", () => this.csv()), entry("JSON", () => this.json()), entry("PNG", () => this.png()));
    const menu = make("span", { className: "menu" }, button, list);
    button.addEventListener("click", () => open(list.hidden));
    menu.addEventListener("keydown", (event) => { if (event.key === "Escape") { open(false); button.focus(); } });
    menu.addEventListener("focusout", (event) => { if (!menu.contains(event.relatedTarget)) open(false); });
    return menu;
  }

  get name() {
    return this.tag.replace(/[^\w.-]+/g, "_");
  }
  csv() {
    const rows = [["run", "step", "wall_time", "value"].join(",")];
    for (const { run, step, wall, values } of this.lines()) step.forEach((s, i) => rows.push([quoted(run), s, wall[i], values[i]].join(",")));
    download(`${this.name}.csv`, "text/csv", rows.join("\n") + "\n");
  }
  json() {
    const runs = Object.fromEntries(this.lines().map(({ run }) => [run, this.data[run]]));
    download(`${this.name}.json`, "application/json", JSON.stringify({ tag: this.tag, runs }));
  }
  png() {
    make("a", { href: this.chart.canvas.element.toDataURL("image/png"), download: `${this.name}.png` }).click();
  }

  async refresh() {
    try {
      this.data = await ask("scalars", { tag: this.tag });
      this.chart.canvas.say("");
      this.paint();
    } catch (error) {
      if (!(error instanceof Gone)) this.chart.canvas.say(error.message);
    }
  }

  lines() {
    const { board, weight, xKind } = this.view;
    return board.inOrder(this.data ?? {}).map(([run, { step, wall, value }]) => {
      const values = value.map(numberOf);
      const x = xKind === "step" ? step : xKind === "wall" ? wall : wall.map((w) => w - wall[0]);
      return { name: board.display(run), run, colour: board.colour(run), step, wall, values, x, y: smooth(values, weight),
               raw: weight ? values : null };
    });
  }

  paint() {
    if (!this.data) return;
    const { weight, xKind, outliers } = this.view;
    this.chart.set(this.lines(), { xKind, outliers, log: this.log || this.view.log,
                                   head: ["Run", ...(weight ? ["Smoothed"] : []), "Value", "Step", "After", "At"] });
  }

  stop() {
    this.view.visible.remove(this.element);
    this.chart.stop();
  }
}

export class Scalars {
  constructor(main, board) {
    this.board = board;
    this.main = main;
    this.cards = new Map();
    this.weight = saved.get("smoothing", 0.6);
    this.xKind = saved.get("x", "step");
    this.log = saved.get("log", false);
    this.outliers = saved.get("outliers", false);
    this.visible = new WhileVisible(main);
    this.filter = filterBox("Filter tags (regular expression)", "tags", () => this.update());
    this.groups = make("div");
    main.append(this.toolbar(), this.groups);
  }

  toolbar() {
    const shown = make("output", {}, this.weight.toFixed(2));
    const slider = make("input", { type: "range", min: 0, max: 0.99, step: 0.01, value: this.weight, "aria-label": "Smoothing" });
    slider.addEventListener("input", () => {
      this.weight = +slider.value;
      shown.textContent = this.weight.toFixed(2);
      saved.set("smoothing", this.weight);
      this.repaint();
    });
    const box = (text, key, title) => {
      const input = make("input", { type: "checkbox", checked: this[key] });
      input.addEventListener("change", () => {
        this[key] = input.checked;
        saved.set(key, input.checked);
        for (const card of this.cards.values()) card.chart.zoom = null;
        this.repaint();
      });
      return make("label", { title }, input, text);
    };
    return make("div", { className: "toolbar" }, this.filter.box, make("label", {}, "Smoothing", slider, shown),
      make("span", { className: "field" }, "Horizontal", segments("Horizontal axis", [["step", "Step"], ["relative", "Relative"], ["wall", "Wall"]],
        this.xKind, (value) => {
          this.xKind = value;
          saved.set("x", value);
          for (const card of this.cards.values()) card.chart.zoom = null;
          this.repaint();
        })),
      box("Logarithmic", "log", "Logarithmic values in all charts"), box("Ignore outliers", "outliers", "Scale to 96 % of the values"));
  }

  update() {
    const tags = this.board.tagsOf("scalars").map(([tag]) => tag).filter((tag) => this.filter.keeps(tag));
    const signature = JSON.stringify(tags);
    if (signature === this.signature) {
      this.visible.again();
      this.repaint();
      return;
    }
    this.signature = signature;
    const groups = new Map();
    for (const tag of tags) {
      const group = tag.includes("/") ? tag.slice(0, tag.indexOf("/")) : "";
      groups.set(group, [...groups.get(group) ?? [], tag]);
    }
    for (const [tag, card] of this.cards) {
      if (tags.includes(tag)) continue;
      card.stop();
      this.cards.delete(tag);
    }
    for (const tag of tags) if (!this.cards.has(tag)) this.cards.set(tag, new ScalarCard(this, tag));
    const order = [...groups].sort(([a], [b]) => !a - !b);  // what belongs to no group comes last
    this.groups.replaceChildren(...order.map(([group, members]) => this.group(group, members)));
    if (!tags.length) this.groups.append(make("p", { className: "empty" }, "No tag of the runs that are shown matches."));
    this.visible.again();
  }

  group(name, tags) {
    const details = make("details", { className: "group", open: !saved.get(`closed.${name}`, false) },
      make("summary", {}, name || "Others", make("span", { className: "soft" }, tags.length)),
      make("div", { className: "cards" }, ...tags.map((tag) => this.cards.get(tag).element)));
    details.addEventListener("toggle", () => saved.set(`closed.${name}`, !details.open));
    return details;
  }

  repaint() {
    for (const card of this.cards.values()) card.paint();
  }

  stop() {
    this.visible.stop();
    for (const card of this.cards.values()) card.stop();
  }
}
