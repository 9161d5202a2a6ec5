/** Certificate authorities with an end of their own choosing, and what can be read from a certificate. */
// @peculiar/x509 needs the polyfill loaded before itself.
import 'reflect-metadata';
import { randomBytes, webcrypto, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import * as x509 from '@peculiar/x509';
import { type KeyPair, loadCertificateAuthority } from '../kube/certificates.ts';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
/** Clocks differ; a certificate from the future is refused. */
const BACKDATE_MS = 60 * 60 * 1000;
const DAY_MS = 24 * 60 * 60 * 1000;

/** When an authority was made: its certificate says an hour earlier. */
export function madeAt(certPem: string): number {
  return new X509Certificate(certPem).validFromDate.getTime() + BACKDATE_MS;
}

export function expiresAt(certPem: string): number {
  return new X509Certificate(certPem).validToDate.getTime();
}

export async function createAuthority(options: {
  commonName: string;
  now: number;
  lifetimeMs: number;
}): Promise<KeyPair> {
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: `00${randomBytes(16).toString('hex')}`,
    // Authorities that follow each other are told apart by the time in their name.
    name: [{ CN: [`${options.commonName} ${new Date(options.now).toISOString()}`] }],
    notBefore: new Date(options.now - BACKDATE_MS),
    notAfter: new Date(options.now + options.lifetimeMs),
    keys,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  const der = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey);
  // With the line break that lets certificates be strung together to a bundle.
  return {
    certPem: `${certificate.toString('pem')}\n`,
    keyPem: x509.PemConverter.encode(der, 'PRIVATE KEY'),
  };
}

export async function issueServing(
  authority: KeyPair,
  options: { hosts: readonly string[]; expiresAt: number },
): Promise<KeyPair> {
  const signer = await loadCertificateAuthority(authority);
  return signer.issue({
    commonName: 'taskflow-operator webhooks',
    usages: ['server'],
    hosts: options.hosts,
    validDays: (options.expiresAt - Date.now()) / DAY_MS,
  });
}

/** The certificates of a bundle, one by one; what cannot be read is left out. */
export function splitBundle(pem: string): string[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g) ?? [];
  return blocks.filter((block) => readCertificate(block) !== undefined).map((block) => `${block}\n`);
}

export function readCertificate(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}

export function covers(certificate: X509Certificate, host: string): boolean {
  return (
    (isIP(host) ? certificate.checkIP(host) : certificate.checkHost(host, { subject: 'never' })) !== undefined
  );
}

/** DNS names and addresses that a certificate is good for. */
export function hostsOf(certificate: X509Certificate): string[] {
  return (certificate.subjectAltName ?? '')
    .split(', ')
    .map((name) => name.replace(/^(DNS|IP Address):/, ''))
    .filter((name) => name !== '');
}
