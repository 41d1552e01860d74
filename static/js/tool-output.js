// <tool-output>: shows one item of the stream from an absolute offset on.
//
// Text is drawn once per animation frame; the element scrolls along only while it
// stands at its end. Offsets count code points, as the server does.

import { LiveText } from "./live-text.js";

const HIDDEN_DRAW_MS = 250;

const isWide = (text) => /[\ud800-\udfff]/.test(text);
const points = (text) => (isWide(text) ? [...text].length : text.length);
const head = (text, count) =>
  isWide(text) ? [...text].slice(0, count).join("") : text.slice(0, count);
const tail = (text, count) =>
  isWide(text) ? [...text].slice(count).join("") : text.slice(count);

class ToolOutput extends HTMLElement {
  connectedCallback() {
    if (this.item !== undefined) return;
    this.item = this.dataset.item ?? "";
    this.offset = Number(this.dataset.offset ?? 0);
    this.isFinal = !this.item && Boolean(this.firstElementChild);
    this.pending = "";
    this.openLine = "";
    const place = this.querySelector(".output-text, .prose");
    if (this.item && place) this.live = new LiveText(place);
  }

  // Says which item a call shows, from which character on.
  bind(item, start) {
    if (this.isFinal || this.item === item) return;
    this.item = item;
    this.offset = start;
    this.live?.clear();
  }

  // Takes what is new of a piece; false: something before it is missing.
  take(start, text) {
    if (start > this.offset) return false;
    const fresh = tail(text, this.offset - start);
    if (!fresh) return true;
    this.offset += points(fresh);
    this.pending += fresh;
    this.openLine = "";
    this.drawSoon();
    return true;
  }

  showLine(at, text) {
    if (at !== this.offset || this.isFinal) return;
    this.openLine = text;
    this.drawSoon();
  }

  // Cuts at `start`: the server lost what came after it, and so does the page.
  reset(start) {
    this.draw();
    const text = this.live?.text ?? "";
    const begin = this.offset - points(text) - (this.live?.cut ?? 0);
    this.live?.clear();
    this.pending = head(text, Math.max(0, start - begin));
    this.offset = start;
    this.draw();
  }

  // Takes the content of the final element: what is here already is only completed.
  finish(output) {
    this.draw();
    this.isFinal = true;
    const [final] = output.children;
    const isPlain = output.childElementCount === 1 && final.matches("pre");
    const shown = this.live?.text ?? "";
    if (!this.live || this.live.cut || !isPlain || !final.textContent.startsWith(shown)) {
      this.replaceChildren(...output.childNodes);
      return;
    }
    this.live.add(final.textContent.slice(shown.length));
    this.live.place.setAttribute("aria-label", final.getAttribute("aria-label"));
  }

  drawSoon() {
    if (this.drawing) return;
    this.drawing = true;
    const draw = () => this.draw();
    // A hidden page gets no frames, and must not hoard text until it is shown.
    if (document.hidden) setTimeout(draw, HIDDEN_DRAW_MS);
    else requestAnimationFrame(draw);
  }

  draw() {
    this.drawing = false;
    if (!this.pending && !this.openLine && !this.live) return;
    this.live ??= new LiveText(this.makePlace());
    this.live.add(this.pending, this.openLine);
    this.pending = "";
  }

  makePlace() {
    const isProse = this.dataset.prose !== undefined;
    const place = document.createElement(isProse ? "div" : "pre");
    place.className = isProse ? "prose" : "output-text";
    if (!isProse) {
      place.tabIndex = 0;
      place.setAttribute("role", "group");
      place.setAttribute("aria-label", `Output of ${this.dataset.name}, live`);
    }
    this.replaceChildren(place);
    return place;
  }
}

customElements.define("tool-output", ToolOutput);
