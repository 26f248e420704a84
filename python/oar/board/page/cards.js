// Views that show a card for each run and tag.
import { ask, Gone } from "./net.js";
import { filterBox, make, moment, short, WhileVisible } from "./util.js";

export class CardView {
  // Card: a class with constructor(view, tag, run), element, set(points), stop?()
  constructor(main, board, kind, Card) {
    Object.assign(this, { main, board, kind, Card });
    this.cards = new Map();
    this.visible = new WhileVisible(main);
    this.filter = filterBox("Filter tags (regular expression)", `tags.${kind}`, () => this.update());
    this.bar = make("div", { className: "toolbar" }, this.filter.box);
    this.list = make("div", { className: "cards" });
    main.append(this.bar, this.list);
  }

  update() {
    const wanted = this.board.tagsOf(this.kind).filter(([tag]) => this.filter.keeps(tag)).flatMap(([tag, runs]) => runs.map((run) => [tag, run]));
    const keys = wanted.map(([tag, run]) => `${tag}\n${run}`);
    for (const [key, card] of this.cards) {
      if (keys.includes(key)) continue;
      this.visible.remove(card.element);
      card.stop?.();
      card.element.remove();
      this.cards.delete(key);
    }
    wanted.forEach(([tag, run], i) => {
      if (!this.cards.has(keys[i])) {
        const card = new this.Card(this, tag, run);
        this.cards.set(keys[i], card);
        this.visible.add(card.element, () => this.refresh(card, tag, run));
      }
      const { element } = this.cards.get(keys[i]);
      if (this.list.children[i] !== element) this.list.insertBefore(element, this.list.children[i] ?? null);
    });
    this.nothing ??= make("p", { className: "empty" }, "No tag of the runs that are shown matches.");
    if (wanted.length) this.nothing.remove();
    else this.main.append(this.nothing);
    this.visible.again();
  }

  async refresh(card, tag, run) {
    try {
      const answer = await ask(this.kind, { tag });
      if (answer[run]) card.set(answer[run]);
    } catch (error) {
      if (!(error instanceof Gone)) card.fail?.(error.message);
    }
  }

  repaint() {
    for (const card of this.cards.values()) card.repaint?.();
  }

  stop() {
    this.visible.stop();
    for (const card of this.cards.values()) card.stop?.();
  }
}

export function cardHead(board, tag, run, ...buttons) {
  return make("div", { className: "card-head" }, make("h3", {}, tag, make("div", { className: "by" },
    make("i", { className: "dot", style: { "--c": board.colour(run) } }), board.display(run))), ...buttons);
}

// A slider over steps. It stays at the newest step until it is moved away from it.
export class Stepper {
  constructor(label, choose) {
    this.points = [];
    this.choose = choose;
    this.slider = make("input", { type: "range", min: 0, max: 0, value: 0, "aria-label": label });
    this.text = make("span");
    this.element = make("div", { className: "stepper" }, this.slider, this.text);
    this.slider.addEventListener("input", () => this.tell());
  }
  set(points) {
    const newest = +this.slider.value >= this.points.length - 1;
    this.points = points;
    this.slider.max = Math.max(points.length - 1, 0);
    if (newest) this.slider.value = points.length - 1;
    this.slider.hidden = points.length < 2;
    this.tell();
  }
  tell() {
    const point = this.points[+this.slider.value];
    if (!point) return;
    this.text.textContent = `step ${short(point[0])} · ${moment(point[1])}`;
    this.slider.setAttribute("aria-valuetext", `step ${point[0]}`);
    this.choose(point);
  }
}
