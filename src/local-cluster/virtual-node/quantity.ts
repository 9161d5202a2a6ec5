/** Kubernetes quantities (`500m`, `1.5Gi`, `2e3`) as whole thousandths, rounded up as the API server does. */

const QUANTITY = /^(-?)(\d*)(?:\.(\d*))?(?:(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE])|[eE]([+-]?\d+))?$/;

const BINARY = ['Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];
const DECIMAL_EXPONENT: Readonly<Record<string, number>> = {
  n: -9,
  u: -6,
  m: -3,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
};

export function thousandths(quantity: string): bigint {
  const match = QUANTITY.exec(quantity.trim().replace(/^\+/, ''));
  const [, sign, whole = '', fraction = '', suffix, exponent] = match ?? [];
  if (!match || whole + fraction === '') throw new Error(`"${quantity}" is not a quantity`);
  const binary = suffix === undefined ? -1 : BINARY.indexOf(suffix);
  const power = Number(exponent ?? (suffix === undefined ? 0 : (DECIMAL_EXPONENT[suffix] ?? 0)));
  const digits = BigInt(whole + fraction) * (binary < 0 ? 1n : 1024n ** BigInt(binary + 1));
  const scaled = scaleByTen(digits, power + 3 - fraction.length);
  return sign === '-' ? -scaled : scaled;
}

/** Whole units, rounded up. */
export function wholeUnits(quantity: string): bigint {
  return ceilDivide(thousandths(quantity), 1000n);
}

export function ceilDivide(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor;
}

export function isLarger(quantity: string, other: string): boolean {
  return thousandths(quantity) > thousandths(other);
}

function scaleByTen(value: bigint, power: number): bigint {
  return power >= 0 ? value * 10n ** BigInt(power) : ceilDivide(value, 10n ** BigInt(-power));
}
