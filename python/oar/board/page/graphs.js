// Graphs of programs: a picture to move and to zoom, and the text of the program.
import { ask } from "./net.js";
import { download, make, matcher } from "./util.js";

// The picture is drawn for light pages; these are its colours on dark ones.
const DARK = `
svg { background: transparent !important; }
:host(.dark) .title { fill: #e8e8e4; }
:host(.dark) .edge { stroke: #6d6e76; } :host(.dark) .name { fill: #f1f1ee; } :host(.dark) .type { fill: #b5b4ad; }
:host(.dark) rect { fill: #26272b; stroke: #6d6e76; }
:host(.dark) .input > rect, :host(.dark) .output > rect { fill: #e8e8e4; stroke: #e8e8e4; }
:host(.dark) .input > .name, :host(.dark) .output > .name { fill: #14140f; }
:host(.dark) .input > .type, :host(.dark) .output > .type { fill: #45443f; }
:host(.dark) .state > rect { fill: #2b2342; stroke: #9d7cf4; } :host(.dark) .heavy > rect { fill: #182b45; stroke: #5b9df0; }
:host(.dark) .elementwise > rect { fill: #16301f; stroke: #3fb56b; } :host(.dark) .reduction > rect { fill: #382a0c; stroke: #d99a2b; }
:host(.dark) .random > rect { fill: #3a1830; stroke: #e06bb0; } :host(.dark) .update > rect { fill: #10312d; stroke: #2bb8a4; }
:host(.dark) .view > rect { fill: #1d1e22; stroke: #55565d; } :host(.dark) .control > rect { fill: #33200f; stroke: #f08a3c; }
:host(.dark) .region > rect { fill: #18191c; stroke: #a6703c; } :host(.dark) .label { fill: #f0a86a; }
:host(.light) svg { color-scheme: light; }
:host(.light) .title { fill: #1e293b; } :host(.light) .edge { stroke: #94a3b8; }
g.found > rect { stroke: #e8710a !important; stroke-width: 4 !important; } .searching g:not(.found):has(> rect) > text { opacity: 0.45; }
`;

export class Graphs {
  constructor(main, board) {
    this.board = board;
    this.scale = 1;
    this.at = [0, 0];
    this.choice = make("select", { "aria-label": "Graph" });
    this.choice.addEventListener("change", () => this.load());
    this.search = make("input", { type: "search", className: "find", placeholder: "Find boxes (regular expression)", "aria-label": "Find boxes" });
    this.search.addEventListener("input", () => this.find());
    this.found = make("span", { className: "soft" });
    const button = (text, title, action) => make("button", { type: "button", className: "icon", title, "aria-label": title, onclick: action }, text);
    this.asText = make("button", { type: "button", "aria-pressed": false, onclick: () => this.toggleText() }, "Text");
    main.append(make("div", { className: "toolbar" }, this.choice, this.search, this.found,
      make("span", { className: "field" }, button("+", "Zoom in", () => this.zoom(1.3)), button("−", "Zoom out", () => this.zoom(1 / 1.3)),
        make("button", { type: "button", onclick: () => this.fit() }, "Fit"), this.asText,
        make("button", { type: "button", onclick: () => download("program.svg", "image/svg+xml", this.svg ?? "") }, "SVG"))));
    this.note = make("div", { className: "note", hidden: true });
    this.host = make("div", { className: "host" });
    this.shadow = this.host.attachShadow({ mode: "open" });
    this.text = make("pre", { hidden: true, tabIndex: 0 });
    this.stage = make("div", { className: "stage", tabIndex: 0, role: "group", "aria-label": "Picture of the program. Arrow keys move it, plus and minus zoom, 0 fits it." },
      this.host, this.text);
    main.append(this.note, this.stage);
    this.hands();
  }

  hands() {
    const stage = this.stage;
    let from = null;
    stage.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || !this.text.hidden) return;
      from = [event.clientX - this.at[0], event.clientY - this.at[1]];
      stage.classList.add("moving");
      stage.setPointerCapture(event.pointerId);
    });
    stage.addEventListener("pointermove", (event) => {
      if (!from) return;
      this.at = [event.clientX - from[0], event.clientY - from[1]];
      this.place();
    });
    stage.addEventListener("pointerup", () => { from = null; stage.classList.remove("moving"); });
    stage.addEventListener("wheel", (event) => {
      if (!this.text.hidden) return;
      event.preventDefault();
      const box = stage.getBoundingClientRect();
      this.zoom(Math.exp(-event.deltaY * 0.0015), event.clientX - box.left, event.clientY - box.top);
    }, { passive: false });
    stage.addEventListener("keydown", (event) => {
      const way = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[event.key];
      if (way) this.at = [this.at[0] + way[0], this.at[1] + way[1]];
      else if (event.key === "+" || event.key === "=") this.zoom(1.3);
      else if (event.key === "-") this.zoom(1 / 1.3);
      else if (event.key === "0") this.fit();
      else return;
      event.preventDefault();
      this.place();
    });
  }

  update() {
    const options = this.board.tagsOf("graphs").flatMap(([tag, runs]) => runs.map((run) => [run, tag]));
    const before = this.choice.value;
    this.choice.replaceChildren(...options.map(([run, tag]) => make("option", { value: JSON.stringify([run, tag]) },
      tag === "program" || tag === "graph" ? this.board.display(run) : `${this.board.display(run)}: ${tag}`)));
    if ([...this.choice.options].some((option) => option.value === before)) this.choice.value = before;
    if (!options.length) this.clear("Every run with a graph is hidden.");
    else if (this.choice.value !== this.loaded) this.load();
  }

  clear(note) {
    this.loaded = null;
    this.svg = "";
    this.shadow.replaceChildren();
    this.note.hidden = !note;
    this.note.textContent = note;
  }

  async load() {
    this.loaded = this.choice.value;
    const [run, tag] = JSON.parse(this.choice.value);
    try {
      const { svg, text, note } = await ask("graph", { run, tag });
      if (this.choice.value !== JSON.stringify([run, tag])) return;
      this.show(svg, text, note);
    } catch (error) {
      this.clear(error.message);
    }
  }

  show(svg, text, note) {
    this.svg = svg;
    this.note.hidden = !note;
    this.note.textContent = note;
    this.text.textContent = text;
    this.asText.hidden = !text;
    // Parsed as a document, in which no script runs.
    const picture = new DOMParser().parseFromString(svg || "<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml").documentElement;
    this.shadow.replaceChildren(document.importNode(picture, true), make("style", {}, DARK));
    this.repaint();
    this.fit();
    this.find();
  }

  fit() {
    const picture = this.shadow.querySelector("svg");
    if (!picture || !picture.hasAttribute("viewBox")) return;
    const [, , width, height] = picture.getAttribute("viewBox").split(" ").map(Number), { clientWidth, clientHeight } = this.stage;
    // A tall program begins at its top, at a size that can be read.
    this.scale = Math.min(1.25, Math.max(Math.min(clientWidth / width, clientHeight / height), Math.min(clientWidth / width, 0.75)));
    this.at = [(clientWidth - width * this.scale) / 2, Math.max((clientHeight - height * this.scale) / 2, 0)];
    this.place();
  }

  zoom(factor, x = this.stage.clientWidth / 2, y = this.stage.clientHeight / 2) {
    const scale = Math.min(Math.max(this.scale * factor, 0.02), 8), by = scale / this.scale;
    this.at = [x - (x - this.at[0]) * by, y - (y - this.at[1]) * by];
    this.scale = scale;
    this.place();
  }

  place() {
    this.host.style.transform = `translate(${this.at[0]}px, ${this.at[1]}px) scale(${this.scale})`;
  }

  find() {
    const picture = this.shadow.querySelector("svg"), keeps = this.search.value ? matcher(this.search.value) : null;
    this.search.classList.toggle("wrong", Boolean(this.search.value) && !keeps);
    if (!picture) return;
    let count = 0, first = null;
    for (const group of picture.querySelectorAll("g")) {
      const title = group.querySelector(":scope > title");
      const hit = Boolean(title && keeps?.(`${title.textContent} ${group.querySelector(":scope > .name")?.textContent}`));
      group.classList.toggle("found", hit);
      if (hit) { count++; first ??= group; }
    }
    picture.classList.toggle("searching", Boolean(keeps));
    this.found.textContent = keeps ? `${count} found` : "";
    if (first) {
      const box = first.getBoundingClientRect(), stage = this.stage.getBoundingClientRect();
      this.at = [this.at[0] + stage.left + stage.width / 2 - box.left - box.width / 2, this.at[1] + stage.top + stage.height / 2 - box.top - box.height / 2];
      this.place();
    }
  }

  toggleText() {
    this.text.hidden = !this.text.hidden;
    this.asText.setAttribute("aria-pressed", !this.text.hidden);
  }

  repaint() {
    const dark = document.documentElement.dataset.theme === "dark";
    this.host.classList.toggle("dark", dark);
    this.host.classList.toggle("light", !dark);
  }
}
