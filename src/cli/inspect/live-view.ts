/** Lines on a terminal that are drawn again in place. */
import { systemClock } from '../../kube/clock.ts';

export interface LiveTerminal {
  readonly rows?: number | undefined;
  write(text: string): unknown;
}

const ESC = '\u001B[';
const HIDE_CURSOR = `${ESC}?25l`;
const SHOW_CURSOR = `${ESC}?25h`;
/** The terminal cuts long lines itself, so that one line of ours is one line of its. */
const WRAP_OFF = `${ESC}?7l`;
const WRAP_ON = `${ESC}?7h`;
const CLEAR_LINE_END = `${ESC}K`;
const CLEAR_BELOW = `${ESC}J`;
/** Ages tick while nothing changes. */
const REDRAW_MS = 1000;
const USUAL_ROWS = 24;

export class LiveView implements Disposable {
  readonly #terminal: LiveTerminal;
  readonly #lines: () => readonly string[];
  #drawn = 0;
  #calledOff: () => void = () => {};
  #due = false;

  constructor(terminal: LiveTerminal, lines: () => readonly string[]) {
    this.#terminal = terminal;
    this.#lines = lines;
    terminal.write(HIDE_CURSOR + WRAP_OFF);
  }

  /** Soon, and once for all that changes at the same time. */
  redraw(): void {
    if (this.#due) return;
    this.#due = true;
    this.#calledOff();
    this.#calledOff = systemClock.after(0, () => this.#draw());
  }

  #draw(): void {
    this.#due = false;
    // Some terminals say that they have 0 rows, meaning that they do not know.
    const lines = fitting(this.#lines(), (this.#terminal.rows || USUAL_ROWS) - 1);
    const back = this.#drawn === 0 ? '' : `\r${ESC}${this.#drawn}A`;
    this.#terminal.write(back + lines.map((line) => `${line}${CLEAR_LINE_END}\n`).join('') + CLEAR_BELOW);
    this.#drawn = lines.length;
    this.#calledOff = systemClock.after(REDRAW_MS, () => this.#draw());
  }

  /** What was drawn last stays, drawn once more so that it is the truth. */
  [Symbol.dispose](): void {
    this.#calledOff();
    this.#draw();
    this.#calledOff();
    this.#terminal.write(WRAP_ON + SHOW_CURSOR);
  }
}

/** What has scrolled away cannot be drawn again. */
export function fitting(lines: readonly string[], rows: number): readonly string[] {
  if (lines.length <= rows) return lines;
  const shown = Math.max(0, rows - 1);
  return [...lines.slice(0, shown), `… and ${lines.length - shown} more`];
}
