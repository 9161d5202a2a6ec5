/** What a watch shows: a picture that is drawn again on a terminal, a line per change elsewhere. */
import type { Change } from '../../kube/change.ts';
import { systemClock } from '../../kube/clock.ts';
import { messageOf } from '../../kube/thrown.ts';
import { paint, print, printError, table } from '../terminal.ts';
import { changeLine } from './change-line.ts';
import { type EngineObject, engineReport, nameText } from './engine-object.ts';
import { LiveView } from './live-view.ts';
import { detailLines } from './status-details.ts';
import { statusRows } from './status-table.ts';
import type { WatchedObjects } from './watched-objects.ts';

export interface WatchForm {
  readonly output: 'table' | 'wide' | 'json';
  /** One object, at length. */
  readonly single: boolean;
  readonly withNamespace: boolean;
}

interface WatchView extends Disposable {
  changed(change: Change<EngineObject>): void;
  troubled(error: unknown): void;
}

export function watchView(form: WatchForm, watched: WatchedObjects): WatchView {
  const inPlace = process.stdout.isTTY && form.output !== 'json';
  return inPlace ? new Picture(form, watched) : new Lines(form);
}

class Picture implements WatchView {
  readonly #form: WatchForm;
  readonly #watched: WatchedObjects;
  readonly #view: LiveView;
  #trouble = '';

  constructor(form: WatchForm, watched: WatchedObjects) {
    this.#form = form;
    this.#watched = watched;
    this.#view = new LiveView(process.stdout, () => this.#lines());
  }

  changed(): void {
    this.#trouble = '';
    this.#view.redraw();
  }

  troubled(error: unknown): void {
    this.#trouble = troubleLine(error);
    this.#view.redraw();
  }

  [Symbol.dispose](): void {
    this.#view[Symbol.dispose]();
  }

  #lines(): string[] {
    const { single, output, withNamespace } = this.#form;
    const now = systemClock.now();
    const objects = this.#watched.sorted();
    const picture = single
      ? objects.flatMap((object) => detailLines(object, now))
      : table(statusRows(objects, { now, wide: output === 'wide', withNamespace })).split('\n');
    return this.#trouble === '' ? picture : [...picture, '', paint('yellow', this.#trouble)];
  }
}

class Lines implements WatchView {
  readonly #form: WatchForm;
  /** By uid: what was printed last. */
  readonly #last = new Map<string, string>();
  #trouble = '';

  constructor(form: WatchForm) {
    this.#form = form;
  }

  changed({ type, object }: Change<EngineObject>): void {
    const line = this.#lineOf(object, type === 'deleted');
    if (this.#last.get(object.metadata.uid) === line) return;
    this.#last.set(object.metadata.uid, line);
    print(this.#form.output === 'json' ? line : `${timeOfDay()}  ${line}`);
  }

  troubled(error: unknown): void {
    const line = troubleLine(error);
    if (line !== this.#trouble) printError(line);
    this.#trouble = line;
  }

  [Symbol.dispose](): void {}

  #lineOf(object: EngineObject, deleted: boolean): string {
    if (this.#form.output === 'json')
      return JSON.stringify({ ...engineReport(object), ...(deleted && { deleted }) });
    return deleted ? `${nameText(object)}  deleted` : changeLine(object, this.#form);
  }
}

function troubleLine(error: unknown): string {
  return `the watch has trouble and is tried again: ${messageOf(error)}`;
}

function timeOfDay(): string {
  return new Date(systemClock.now()).toTimeString().slice(0, 8);
}
