// Curves of precision and recall, and of true and false positives: all runs of a tag in one chart.
import { Stepper } from "./cards.js";
import { LineChart } from "./lines.js";
import { ask, Gone } from "./net.js";
import { filterBox, make, numberOf, short, WhileVisible } from "./util.js";

const NAMES = { pr: ["Recall", "Precision", "average precision"], roc: ["False positives", "True positives", "area"] };

// The area below a curve. Average precision takes steps of recall, as usual; the other one straight lines.
export function area(form, x, y) {
  let sum = 0;
  for (let i = 1; i < x.length; i++) sum += Math.abs(x[i] - x[i - 1]) * (form === "pr" ? y[i] : (y[i] + y[i - 1]) / 2);
  return sum;
}

class CurveCard {
  constructor(view, tag) {
    Object.assign(this, { view, tag, data: {} });
    this.title = make("h3", {}, tag);
    this.legend = make("div", { className: "legend" });
    this.stepper = new Stepper(`Step of ${tag}`, () => this.paint());
    this.element = make("section", { className: "card" }, make("div", { className: "card-head" }, this.title));
    this.chart = new LineChart(this.element, {
      height: 270, label: `Curve ${tag}`, fixed: { x: [0, 1], y: [0, 1.02] }, head: ["Run", "y", "x", "Threshold", "TP", "FP", "TN", "FN"],
      tip: (line, i) => [short(line.y[i], 3), short(line.x[i], 3), short(line.threshold[i], 3),
                         ...line.counts.map((part) => short(part[i]))],
    });
    this.element.append(this.legend, this.stepper.element);
    view.visible.add(this.element, () => this.refresh());
  }

  async refresh() {
    try {
      this.data = await ask("curves", { tag: this.tag });
    } catch (error) {
      if (!(error instanceof Gone)) this.chart.canvas.say(error.message);
      return;
    }
    const steps = new Map();
    for (const points of Object.values(this.data)) for (const [step, wall] of points) steps.set(step, wall);
    this.stepper.set([...steps].sort((a, b) => a[0] - b[0]));
  }

  // Of each run the last curve until the chosen step.
  paint() {
    const { board } = this.view, until = this.stepper.points[+this.stepper.slider.value]?.[0];
    const lines = board.inOrder(this.data).flatMap(([run, points]) => {
      const point = points.filter(([step]) => step <= until).at(-1);
      if (!point) return [];
      const [, , form, xs, ys, counts] = point;
      // From the strictest threshold on, so that x grows. Where nothing counts as positive, precision says nothing.
      const order = xs.map((_, i) => i).reverse().filter((i) => form !== "pr" || numberOf(counts[0][i]) + numberOf(counts[1][i]) > 0);
      const pick = (list) => order.map((i) => numberOf(list[i]));
      return [{ name: board.display(run), colour: board.colour(run), form, x: pick(xs), y: pick(ys), counts: counts.map(pick),
                threshold: order.map((i) => i / Math.max(xs.length - 1, 1)) }];
    });
    const form = lines[0]?.form ?? "pr", [xName, yName, areaName] = NAMES[form];
    this.legend.replaceChildren(...lines.map((line) => make("span", {}, make("i", { className: "dot", style: { "--c": line.colour } }),
      `${line.name}: ${areaName} ${short(area(line.form, [0, ...line.x], [0, ...line.y]), 4)}`)));
    this.title.replaceChildren(this.tag, make("div", { className: "by" }, `${yName} over ${xName.toLowerCase()}`));
    const extra = form === "roc" ? [{ name: "chance", colour: "#999999", dash: [4, 4], x: [0, 1], y: [0, 1], counts: [[], [], [], []], threshold: [], silent: true }] : [];
    this.chart.set([...extra, ...lines], { head: ["Run", yName, xName, "Threshold", "TP", "FP", "TN", "FN"] });
  }

  stop() {
    this.view.visible.remove(this.element);
    this.chart.stop();
  }
}

export class Curves {
  constructor(main, board) {
    this.board = board;
    this.cards = new Map();
    this.visible = new WhileVisible(main);
    this.filter = filterBox("Filter tags (regular expression)", "tags.curves", () => this.update());
    this.list = make("div", { className: "cards" });
    main.append(make("div", { className: "toolbar" }, this.filter.box), this.list);
  }

  update() {
    const tags = this.board.tagsOf("curves").map(([tag]) => tag).filter((tag) => this.filter.keeps(tag));
    for (const [tag, card] of this.cards) {
      if (tags.includes(tag)) continue;
      card.stop();
      this.cards.delete(tag);
    }
    for (const tag of tags) if (!this.cards.has(tag)) this.cards.set(tag, new CurveCard(this, tag));
    this.list.replaceChildren(...tags.map((tag) => this.cards.get(tag).element));
    this.visible.again();
  }

  repaint() {
    for (const card of this.cards.values()) card.paint();
  }

  stop() {
    this.visible.stop();
    for (const card of this.cards.values()) card.stop();
  }
}
