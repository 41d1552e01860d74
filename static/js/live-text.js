// Growing text in blocks of whole lines, so that a browser skips what is out of sight.
// Of an endless text the first and the last blocks stay, with a word about the rest.

const BLOCK = 16384; // characters; a line longer than that is broken after all
const HEAD_BLOCKS = 2;
const TAIL_BLOCKS = 6;
const NEAR_END = 24; // pixels
const LONG_BLOCKS = 3; // beyond it, blocks out of sight are not drawn

export class LiveText {
  constructor(place) {
    this.place = place;
    this.cut = 0; // characters taken out of the middle
    const text = place.textContent;
    place.replaceChildren();
    this.add(text);
  }

  get text() {
    return this.blocks().map((block) => block.textContent).join("");
  }

  blocks() {
    return [...this.place.querySelectorAll(":scope > [data-block]")];
  }

  clear() {
    this.place.replaceChildren();
    this.cut = 0;
  }

  // Adds text and shows the line that is still open after it.
  add(text, openLine = "") {
    const { place } = this;
    const isAtEnd = place.scrollHeight - place.scrollTop - place.clientHeight < NEAR_END;
    place.querySelector(":scope > [data-open-line]")?.remove();
    for (let rest = text; rest; ) rest = rest.slice(this.fill(rest));
    if (text) this.cutMiddle();
    if (openLine) place.append(this.span("openLine", openLine));
    if (isAtEnd) place.scrollTop = place.scrollHeight;
  }

  // Puts as much as fits into the last block; it ends with a line, as none is broken.
  fill(text) {
    let block = this.place.lastElementChild;
    const size = block?.firstChild?.length ?? 0;
    const endsLine = size && block.firstChild.data.endsWith("\n");
    if (!block || (size >= BLOCK && endsLine) || size >= 2 * BLOCK) {
      block = this.span("block", "");
      this.place.append(block);
    }
    if (!block.firstChild) block.append("");
    const room = Math.max(0, BLOCK - block.firstChild.length);
    const lineEnd = text.indexOf("\n", room) + 1 || text.length;
    const taken = Math.min(lineEnd, BLOCK);
    block.firstChild.appendData(text.slice(0, taken));
    return taken;
  }

  cutMiddle() {
    const blocks = this.blocks();
    if (blocks.length > LONG_BLOCKS) this.place.dataset.long = "";
    const surplus = blocks.slice(HEAD_BLOCKS, -TAIL_BLOCKS);
    if (!surplus.length) return;
    for (const block of surplus) {
      this.cut += block.firstChild.length;
      block.remove();
    }
    this.place.querySelector(":scope > [data-gap]")?.remove();
    const words = `${this.cut.toLocaleString()} characters between`;
    blocks[HEAD_BLOCKS - 1].after(this.span("gap", words));
  }

  span(kind, text) {
    const span = document.createElement("span");
    span.dataset[kind] = "";
    if (text) span.textContent = text;
    return span;
  }
}
