/**
 * Cuts the answer to a list into its items while it arrives. Parsed in one
 * piece, ten thousand objects hold the event loop for half a second and need
 * their text and their objects in memory at the same time; item by item they
 * do not. The server gives such answers even to those who ask for pages, if
 * they also ask for its cache.
 *
 * The only array directly in a list is `items`, and items are objects: so
 * brackets are counted, strings skipped, and nothing else looked at.
 */
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/** Inside of `{"items":[`. */
const ITEMS_DEPTH = 2;

export class ListSplitter {
  #depth = 0;
  #inString = false;
  #escaped = false;
  #inItems = false;
  /** Beginnings of the item or the envelope, from earlier chunks. */
  #item: Buffer[] = [];
  readonly #envelope: Buffer[] = [];

  /** The items that this chunk completes. */
  push(chunk: Buffer): Buffer[] {
    const items: Buffer[] = [];
    let itemFrom = this.#item.length > 0 ? 0 : -1;
    let envelopeFrom = this.#inItems ? -1 : 0;
    for (let at = 0; at < chunk.length; at++) {
      if (this.#inString) {
        at = this.#skipString(chunk, at);
        continue;
      }
      switch (chunk[at]) {
        case QUOTE:
          this.#inString = true;
          break;
        case OPEN_BRACE:
          if (this.#inItems && this.#depth === ITEMS_DEPTH) itemFrom = at;
          this.#depth++;
          break;
        case CLOSE_BRACE:
          this.#depth--;
          if (this.#inItems && this.#depth === ITEMS_DEPTH) {
            items.push(this.#complete(chunk.subarray(itemFrom, at + 1)));
            itemFrom = -1;
          }
          break;
        case OPEN_BRACKET:
          this.#depth++;
          if (!this.#inItems && this.#depth === ITEMS_DEPTH) {
            this.#inItems = true;
            this.#envelope.push(chunk.subarray(envelopeFrom, at + 1));
          }
          break;
        case CLOSE_BRACKET:
          this.#depth--;
          if (this.#inItems && this.#depth < ITEMS_DEPTH) {
            this.#inItems = false;
            envelopeFrom = at;
          }
          break;
        case undefined:
        default:
          break;
      }
    }
    if (this.#inItems && itemFrom !== -1) this.#item.push(chunk.subarray(itemFrom));
    if (!this.#inItems) this.#envelope.push(chunk.subarray(envelopeFrom));
    return items;
  }

  /** What is around the items: kind, resource version, place of the next page. */
  end(): string {
    if (this.#depth !== 0) throw new Error('the list ended in the middle');
    return Buffer.concat(this.#envelope).toString('utf8');
  }

  /** Returns the place of the string's last byte in this chunk. */
  #skipString(chunk: Buffer, from: number): number {
    for (let at = from; at < chunk.length; at++) {
      if (this.#escaped) this.#escaped = false;
      else if (chunk[at] === BACKSLASH) this.#escaped = true;
      else if (chunk[at] === QUOTE) {
        this.#inString = false;
        return at;
      }
    }
    return chunk.length;
  }

  #complete(end: Buffer): Buffer {
    if (this.#item.length === 0) return end;
    const item = Buffer.concat([...this.#item, end]);
    this.#item = [];
    return item;
  }
}
