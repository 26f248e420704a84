// The frame of the page: tabs, runs, colours, news from the server.
import { ask } from "./net.js";
import { colour, emptyState, make, matcher, moment, saved } from "./util.js";
import { Scalars } from "./scalars.js";
import { Histograms } from "./histograms.js";
import { Audio, Images, Text } from "./media.js";
import { Graphs } from "./graphs.js";
import { Embeddings } from "./embeddings.js";
import { Hparams } from "./hparams.js";
import { Curves } from "./curves.js";

const TABS = [
  ["scalars", "Scalars", Scalars, 'writer.add_scalar("train/loss", loss, step)'],
  ["histograms", "Histograms", Histograms, 'writer.add_histogram("fc.weight", net.fc.weight, step, buckets=30)'],
  ["images", "Images", Images, 'writer.add_image("samples", image, step)'],
  ["text", "Text", Text, 'writer.add_text("samples", "Once upon a time", step)'],
  ["audio", "Audio", Audio, 'writer.add_audio("samples", sound, step, sample_rate=16000)'],
  ["graphs", "Graphs", Graphs, 'writer.add_graph(net, [oar.static.InputSpec([-1, 3], "float32")])'],
  ["embeddings", "Embeddings", Embeddings, 'writer.add_embeddings("words", vectors, words)'],
  ["hparams", "Hyper-parameters", Hparams, 'writer.add_hparams({"lr": 0.1, "layers": 3}, ["test/accuracy"])'],
  ["curves", "PR and ROC", Curves, 'writer.add_pr_curve("test", labels, probabilities, step)'],
];

const $ = (id) => document.getElementById(id);

class Board {
  constructor() {
    this.overview = null;
    this.hidden = new Set(saved.get("hidden", []));
    this.colours = new Map();
    this.view = null;
    this.tab = null;
    this.tabs();
    this.themes();
    this.runControls();
    addEventListener("hashchange", () => this.show(location.hash.slice(1)));
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.look(); });
    this.show(location.hash.slice(1));
    this.look();
  }

  // ---- what views ask

  get runs() {
    return (this.overview?.runs ?? []).filter((run) => !run.empty);
  }
  shown(run) {
    return !this.hidden.has(run) && this.runs.some((r) => r.name === run);
  }
  colour(run) {
    return this.colours.get(run) ?? "#888";
  }
  display(run) {
    return this.runs.find((r) => r.name === run)?.display ?? run;
  }
  // What an answer has for each run that is shown, in the order of the list of runs.
  inOrder(answer) {
    return this.runs.filter((run) => run.name in answer && this.shown(run.name)).map((run) => [run.name, answer[run.name]]);
  }
  // [tag, its runs that are shown], for tags that have any
  tagsOf(kind) {
    const all = Object.entries(this.overview?.tags[kind] ?? {});
    return all.map(([tag, runs]) => [tag, runs.filter((run) => this.shown(run))]).filter(([, runs]) => runs.length);
  }

  // ---- tabs

  tabs() {
    for (const [key, title] of TABS) {
      $("tabs").append(make("button", {
        type: "button", id: `tab-${key}`, role: "tab", "aria-controls": "main", onclick: () => { location.hash = key; },
        onkeydown: (event) => {
          const way = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
          if (!way) return;
          const at = TABS.findIndex(([k]) => k === key), next = TABS[(at + way + TABS.length) % TABS.length][0];
          location.hash = next;
          $(`tab-${next}`).focus();
        },
      }, title, make("span", { className: "count" })));
    }
  }

  show(key) {
    const found = TABS.find(([k]) => k === key) ?? TABS[0];
    if (this.tab === found[0]) return;
    this.tab = found[0];
    this.view?.stop?.();
    this.view = null;
    for (const [k, title] of TABS) {
      $(`tab-${k}`).setAttribute("aria-selected", k === this.tab);
      $(`tab-${k}`).tabIndex = k === this.tab ? 0 : -1;
      if (k === this.tab) document.title = `${title} – Oar board`;
    }
    $("main").replaceChildren();
    $("main").setAttribute("aria-labelledby", `tab-${this.tab}`);
    if (this.overview) this.update();
  }

  // ---- news

  async look() {
    clearTimeout(this.timer);
    if (document.hidden) return;
    let wait = 5;
    try {
      const news = await ask("overview");
      wait = news.loading ? 1 : news.reload;
      const changed = news.version !== this.overview?.version || news.loading !== this.overview?.loading;
      this.overview = news;
      $("live").textContent = news.loading ? "Loading" : "Live";
      $("live").title = `Last look at ${moment(Date.now() / 1000, false)}; every ${news.reload} s`;
      $("live").className = "live";
      if (changed) this.update();
    } catch {
      $("live").textContent = "Server not reached";
      $("live").className = "live off";
    }
    this.timer = setTimeout(() => this.look(), wait * 1000);
  }

  update() {
    this.runs.forEach((run, i) => this.colours.set(run.name, colour(i)));
    this.listRuns();
    this.listProblems();
    for (const [key] of TABS) {
      const count = key === "hparams" ? this.overview.tags.hparams.hparams?.length ?? 0 : Object.keys(this.overview.tags[key]).length;
      $(`tab-${key}`).classList.toggle("none", !count);
      $(`tab-${key}`).querySelector(".count").textContent = count || "";
    }
    $("root").textContent = this.overview.root;
    this.updateView();
  }

  updateView() {
    const [key, title, View, example] = TABS.find(([k]) => k === this.tab);
    const any = Object.keys(this.overview.tags[key]).length > 0;
    if (!any) {
      this.view?.stop?.();
      this.view = null;
      $("main").replaceChildren(this.overview.loading ? emptyState("Loading", "The logs are being read.") : emptyState(
        `No ${title.toLowerCase().replace("pr and roc", "PR or ROC curves")} yet`,
        `Nothing in ${this.overview.root} has any. A training program writes them with:`,
        `from oar.board import LogWriter\n\nwith LogWriter("${this.example()}") as writer:\n    ${example}`));
      return;
    }
    if (!this.view) {
      $("main").replaceChildren();
      this.view = new View($("main"), this);
    }
    this.view.update();
  }

  example() {
    return `${this.overview.root.replace(/\/$/, "")}/first`;
  }

  // ---- runs

  runControls() {
    $("run-filter").value = saved.get("runs", "");
    $("run-filter").addEventListener("input", () => {
      const found = matcher($("run-filter").value);
      $("run-filter").classList.toggle("wrong", !found);
      if (!found) return;
      saved.set("runs", $("run-filter").value);
      this.listRuns();
    });
    $("runs-all").addEventListener("click", () => this.choose(this.filtered().map((r) => r.name), true));
    $("runs-none").addEventListener("click", () => this.choose(this.filtered().map((r) => r.name), false));
  }

  filtered() {
    const keeps = matcher($("run-filter").value) ?? (() => true);
    return this.runs.filter((run) => keeps(run.name) || keeps(run.display));
  }

  choose(names, on) {
    for (const name of names) {
      if (on) this.hidden.delete(name);
      else this.hidden.add(name);
    }
    saved.set("hidden", [...this.hidden]);
    this.listRuns();
    if (this.overview) this.updateView();
  }

  listRuns() {
    const list = $("runs"), focused = document.activeElement?.dataset?.run;
    const filtered = this.filtered();
    list.replaceChildren(...filtered.map((run) => {
      const on = !this.hidden.has(run.name);
      const box = make("input", { type: "checkbox", className: "run", checked: on, style: { "--c": this.colour(run.name) } });
      box.dataset.run = run.name;
      box.addEventListener("change", () => this.choose([run.name], box.checked));
      const only = make("button", { type: "button", className: "only quiet", title: `Show ${run.display} alone` }, "only");
      only.setAttribute("aria-label", `Show ${run.display} alone`);
      only.addEventListener("click", () => {
        this.hidden = new Set(this.runs.map((r) => r.name));
        this.choose([run.name], true);
      });
      return make("li", { className: on ? "" : "off" },
        make("label", { title: run.name }, box, make("span", { className: "name" }, run.display)), only);
    }));
    if (focused !== undefined) [...list.querySelectorAll("input")].find((box) => box.dataset.run === focused)?.focus();
    const shown = this.runs.filter((run) => !this.hidden.has(run.name)).length;
    $("run-count").textContent = this.runs.length ? `${shown} of ${this.runs.length}` : "";
  }

  listProblems() {
    const { problems } = this.overview, box = $("problems");
    box.hidden = !problems.length;
    box.querySelector("summary").textContent = problems.length === 1 ? "1 problem with the files" : `${problems.length} problems with the files`;
    box.querySelector("ul").replaceChildren(...problems.map(([file, text]) => make("li", {}, make("b", {}, file), text)));
  }

  // ---- light and dark

  themes() {
    const dark = matchMedia("(prefers-color-scheme: dark)"), button = $("theme");
    let choice = saved.get("theme", "auto");
    const apply = () => {
      document.documentElement.dataset.theme = choice === "auto" ? (dark.matches ? "dark" : "light") : choice;
      button.textContent = { auto: "Auto", light: "Light", dark: "Dark" }[choice];
      button.setAttribute("aria-label", `Colours: ${{ auto: "follow the system", light: "light", dark: "dark" }[choice]}`);
      button.title = button.getAttribute("aria-label");
      this.view?.repaint?.();
    };
    dark.addEventListener("change", apply);
    button.addEventListener("click", () => {
      choice = { auto: "dark", dark: "light", light: "auto" }[choice];
      saved.set("theme", choice);
      apply();
    });
    apply();
  }
}

new Board();
