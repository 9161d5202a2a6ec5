/**
 * Certificate authorities and what they sign: server certificates, and client
 * certificates as Kubernetes reads them (common name = user, organization =
 * group). ECDSA P-256, because an RSA key costs a start-up second.
 */
// @peculiar/x509 needs the polyfill loaded before itself.
import 'reflect-metadata';
import { createPublicKey, randomBytes, webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import * as x509 from '@peculiar/x509';

export interface KeyPair {
  readonly certPem: string;
  readonly keyPem: string;
}

export interface LeafRequest {
  /** User name of a client certificate, or the name of a server. */
  readonly commonName: string;
  /** Groups, where Kubernetes reads the certificate as a user. */
  readonly organizations?: readonly string[];
  readonly usages: readonly ('client' | 'server')[];
  /** DNS names and IP addresses that a server answers to. */
  readonly hosts?: readonly string[];
  readonly validDays?: number;
}

export interface CertificateAuthority extends KeyPair {
  issue(request: LeafRequest): Promise<KeyPair>;
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const DAY_MS = 24 * 60 * 60 * 1000;
/** Clocks of containers and hosts differ by seconds; a certificate from the future is refused. */
const BACKDATE_MS = 60 * 60 * 1000;
const DEFAULT_VALID_DAYS = 3650;
const EXTENDED_KEY_USAGE = { client: '1.3.6.1.5.5.7.3.2', server: '1.3.6.1.5.5.7.3.1' } as const;

export async function createCertificateAuthority(commonName: string): Promise<CertificateAuthority> {
  const keys = await generateKeys();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: [{ CN: [commonName] }],
    ...validity(DEFAULT_VALID_DAYS),
    keys,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return authority(certificate, keys.privateKey, await exportPrivateKey(keys.privateKey));
}

/** An authority that an earlier run wrote to disk. */
export async function loadCertificateAuthority(pair: KeyPair): Promise<CertificateAuthority> {
  const der = x509.PemConverter.decodeFirst(pair.keyPem);
  const privateKey = await webcrypto.subtle.importKey('pkcs8', der, ALGORITHM, true, ['sign']);
  return authority(new x509.X509Certificate(pair.certPem), privateKey, pair.keyPem);
}

/** A bare key pair for signing service-account tokens. */
export async function createSigningKeys(): Promise<{ publicPem: string; privatePem: string }> {
  const privatePem = await exportPrivateKey((await generateKeys()).privateKey);
  const publicPem = createPublicKey(privatePem).export({ type: 'spki', format: 'pem' }).toString();
  return { publicPem, privatePem };
}

function authority(
  certificate: x509.X509Certificate,
  signingKey: webcrypto.CryptoKey,
  keyPem: string,
): CertificateAuthority {
  return {
    certPem: certificate.toString('pem'),
    keyPem,
    async issue(request) {
      const keys = await generateKeys();
      const leaf = await x509.X509CertificateGenerator.create({
        serialNumber: serialNumber(),
        issuer: certificate.subject,
        subject: [
          { CN: [request.commonName] },
          ...(request.organizations ?? []).map((name) => ({ O: [name] })),
        ],
        ...validity(request.validDays ?? DEFAULT_VALID_DAYS),
        publicKey: keys.publicKey,
        signingKey,
        signingAlgorithm: ALGORITHM,
        extensions: [
          new x509.BasicConstraintsExtension(false, undefined, true),
          new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
          new x509.ExtendedKeyUsageExtension(request.usages.map((usage) => EXTENDED_KEY_USAGE[usage])),
          await x509.AuthorityKeyIdentifierExtension.create(certificate.publicKey),
          ...alternativeNames(request.hosts),
        ],
      });
      return { certPem: leaf.toString('pem'), keyPem: await exportPrivateKey(keys.privateKey) };
    },
  };
}

function alternativeNames(hosts: readonly string[] | undefined): x509.Extension[] {
  if (!hosts?.length) return [];
  return [
    new x509.SubjectAlternativeNameExtension(
      hosts.map((host) => ({ type: isIP(host) ? ('ip' as const) : ('dns' as const), value: host })),
    ),
  ];
}

async function generateKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
}

async function exportPrivateKey(key: webcrypto.CryptoKey): Promise<string> {
  return x509.PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY');
}

function validity(days: number): { notBefore: Date; notAfter: Date } {
  const now = Date.now();
  return { notBefore: new Date(now - BACKDATE_MS), notAfter: new Date(now + days * DAY_MS) };
}

/** 128 random bits; the leading zero keeps the DER integer positive. */
function serialNumber(): string {
  return `00${randomBytes(16).toString('hex')}`;
}
