// Images, texts and sound.
import { CardView, cardHead, Stepper } from "./cards.js";
import { blobUrl } from "./net.js";
import { make, moment, short } from "./util.js";

class ImageCard {
  constructor({ board }, tag, run) {
    this.image = make("img", { alt: `${tag} of ${board.display(run)}`, decoding: "async" });
    this.image.addEventListener("load", () => {
      const { naturalWidth: width, naturalHeight: height } = this.image, small = Math.max(width, height) < 200;
      this.image.classList.toggle("small", small);
      this.image.style.width = small ? `${Math.min(320, width * Math.max(1, Math.floor(300 / Math.max(width, height))))}px` : "";
      this.size.textContent = `${width} × ${height}`;
    });
    this.image.addEventListener("error", () => { this.size.textContent = "The browser cannot show this image."; });
    this.size = make("span", { className: "soft" });
    this.stepper = new Stepper(`Step of ${tag}`, ([, , key]) => {
      const url = blobUrl("images", run, tag, key);
      if (this.image.getAttribute("src") !== url) this.image.src = url;
    });
    this.element = make("section", { className: "card" }, cardHead(board, tag, run, this.size),
      make("div", { className: "picture" }, this.image), this.stepper.element);
  }
  set(points) {
    this.stepper.set(points);
  }
}

export class Images extends CardView {
  constructor(main, board) {
    super(main, board, "images", ImageCard);
  }
}

class AudioCard {
  constructor({ board }, tag, run) {
    this.player = make("audio", { controls: true, preload: "metadata", "aria-label": `${tag} of ${board.display(run)}` });
    this.stepper = new Stepper(`Step of ${tag}`, ([, , key]) => {
      const url = blobUrl("audio", run, tag, key);
      if (this.player.getAttribute("src") !== url) this.player.src = url;
    });
    this.element = make("section", { className: "card" }, cardHead(board, tag, run), this.player, this.stepper.element);
  }
  set(points) {
    this.stepper.set(points);
  }
}

export class Audio extends CardView {
  constructor(main, board) {
    super(main, board, "audio", AudioCard);
  }
}

class TextCard {
  constructor({ board }, tag, run) {
    this.texts = make("div");
    this.element = make("section", { className: "card" }, cardHead(board, tag, run), this.texts);
  }
  set(points) {
    const newest = points.at(-1);
    const state = JSON.stringify([points.length, newest?.[0], newest?.[1]]);
    if (state === this.state) return;
    this.state = state;
    this.texts.replaceChildren(...[...points].reverse().flatMap(([step, wall, text]) => [
      make("div", { className: "soft" }, `step ${short(step)} · ${moment(wall)}`), make("pre", { tabIndex: 0 }, text)]));
  }
}

export class Text extends CardView {
  constructor(main, board) {
    super(main, board, "text", TextCard);
  }
}
