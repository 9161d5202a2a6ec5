/** A zod schema that no structural schema can say; the text tells what to write instead. */
export class NotStructuralError extends Error {
  readonly code = 'NotStructural';
  /** `spec.topology[].replica` */
  readonly path: string;
  readonly found: string;
  readonly instead: string;

  constructor(finding: { path: string; found: string; instead: string; kind?: string }) {
    const where = finding.path === '' ? 'the schema' : finding.path;
    const owner = finding.kind === undefined ? '' : `${finding.kind}: `;
    super(`${owner}${where} is ${finding.found}, which is not structural; ${finding.instead}`);
    this.name = 'NotStructuralError';
    this.path = finding.path;
    this.found = finding.found;
    this.instead = finding.instead;
  }
}
