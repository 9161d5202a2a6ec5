/** Times as the API server stores them; anything finer would never compare equal to what it returns. */

/** metav1.Time: whole seconds. */
export function apiTime(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d{3}Z$/, 'Z');
}

/** metav1.MicroTime, as Leases use it. */
export function apiMicroTime(ms: number): string {
  return new Date(ms).toISOString().replace(/Z$/, '000Z');
}
