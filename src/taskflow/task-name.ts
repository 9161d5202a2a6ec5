/** `createOBServerPVC` → `create observer pvc`: a space where a lower-case letter meets an upper-case one. */
export function taskName(key: string): string {
  const capitalised = key.charAt(0).toUpperCase() + key.slice(1);
  return capitalised.replaceAll(/(?<=[a-z])(?=[A-Z])/g, ' ').toLowerCase();
}
