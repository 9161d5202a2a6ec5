/** Durations in as many letters as a reader needs, as kubectl writes ages. */
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

interface Unit {
  readonly ms: number;
  readonly letter: string;
}

const UNITS = {
  second: { ms: SECOND, letter: 's' },
  minute: { ms: MINUTE, letter: 'm' },
  hour: { ms: HOUR, letter: 'h' },
  day: { ms: DAY, letter: 'd' },
} as const satisfies Record<string, Unit>;

/** Below this length, in these units. */
const FORMS: readonly { readonly below: number; readonly units: readonly Unit[] }[] = [
  { below: 2 * MINUTE, units: [UNITS.second] },
  { below: 10 * MINUTE, units: [UNITS.minute, UNITS.second] },
  { below: 3 * HOUR, units: [UNITS.minute] },
  { below: 8 * HOUR, units: [UNITS.hour, UNITS.minute] },
  { below: 2 * DAY, units: [UNITS.hour] },
  { below: 8 * DAY, units: [UNITS.day, UNITS.hour] },
  { below: Infinity, units: [UNITS.day] },
];

export function durationText(ms: number): string {
  const { units } = FORMS.find(({ below }) => ms < below) ?? { units: [UNITS.day] };
  let left = Math.max(0, ms);
  return units
    .map(({ ms: size, letter }, at) => {
      const count = Math.floor(left / size);
      left -= count * size;
      return at > 0 && count === 0 ? '' : `${count}${letter}`;
    })
    .join('');
}

/** Of a task that has ended: short ones would all be 0s. */
export function spentText(ms: number): string {
  return ms < 10 * SECOND ? `${(ms / SECOND).toFixed(1)}s` : durationText(ms);
}

/** `-` where the time is not known. */
export function ageText(at: string | undefined, now: number): string {
  return at === undefined ? '-' : durationText(now - Date.parse(at));
}

/** `in 14s`, or `now` when the moment has come. */
export function untilText(at: string, now: number): string {
  const left = Date.parse(at) - now;
  return left < SECOND ? 'now' : `in ${durationText(left)}`;
}
