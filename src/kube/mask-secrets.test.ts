import { describe, expect, it } from 'vitest';
import { isSecretKey, maskSecrets, maskValue } from './mask-secrets.ts';

const KEY = `-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIA\n-----END EC PRIVATE KEY-----`;
const JWT = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl';

describe('maskSecrets', () => {
  it.each([
    ['password=hunter2', 'password=***'],
    ['PASSWORD=hunter2 host=db', 'PASSWORD=*** host=db'],
    ['passwd: hunter2, user: root', 'passwd: ***, user: root'],
    ['MYSQL_ROOT_PASSWORD=a;b', 'MYSQL_ROOT_PASSWORD=***;b'],
    ['{"password":"hunter2","user":"root"}', '{"password":"***","user":"root"}'],
    ['{"password": "with \\" quote", "a": 1}', '{"password": "***", "a": 1}'],
    ['body "{\\"token\\":\\"abc\\",\\"n\\":1}"', 'body "{\\"token\\":\\"***\\",\\"n\\":1}"'],
    ['{"password":"cut of', '{"password":"***"'],
    ["{'secret': 'x y z'}", "{'secret': '***'}"],
    ['access_key=AK1 access_id=AK2 secret_key=SK', 'access_key=*** access_id=*** secret_key=***'],
    [
      'oss://bucket/path?host=h&access_id=LTA&access_key=K&delete_mode=x',
      'oss://bucket/path?host=h&access_id=***&access_key=***&delete_mode=x',
    ],
    ['aws_secret_access_key = "abc/def+g"', 'aws_secret_access_key = "***"'],
    ['Authorization: Bearer abc.def-ghi', 'Authorization: Bearer ***'],
    ['authorization: Basic dXNlcjpwYXNz', 'authorization: Basic ***'],
    ['sent header bearer abcdefgh12345', 'sent header bearer ***'],
    [`the token ${JWT} was refused`, 'the token *** was refused'],
    [
      "CREATE USER 'ob'@'%' IDENTIFIED BY 'it''s; secret' REQUIRE SSL",
      "CREATE USER 'ob'@'%' IDENTIFIED BY '***' REQUIRE SSL",
    ],
    ['alter user root identified by "p w"', "alter user root identified by '***'"],
    ["IDENTIFIED WITH mysql_native_password AS '*6C8989'", "IDENTIFIED WITH mysql_native_password AS '***'"],
    ["SET PASSWORD FOR root = 'abc'", "SET PASSWORD FOR root = '***'"],
    ['dial mysql://root:pa55@10.0.0.1:2881/db', 'dial mysql://root:***@10.0.0.1:2881/db'],
    ['postgres://u:p%40ss@h/db?sslmode=off', 'postgres://u:***@h/db?sslmode=off'],
    ['https://:onlypass@host/', 'https://:***@host/'],
    ['root@sys:pa55@tcp(10.0.0.1:2881)/', 'root@sys:***@tcp(10.0.0.1:2881)/'],
    ['run --password hunter2 --user root', 'run --password *** --user root'],
    ['run --db-password=hunter2', 'run --db-password=***'],
    ["obclient -uroot -p'hunter2'", "obclient -uroot -p'***'"],
    [`key is ${KEY} end`, 'key is [private key ***] end'],
    ['-----BEGIN RSA PRIVATE KEY-----\nMIIE (cut off', '[private key ***]'],
    [
      'spec.rootPassword: Invalid value: "abc": too short',
      'spec.rootPassword: Invalid value: "***": too short',
    ],
  ])('%s', (text, expected) => {
    expect(maskSecrets(text)).toBe(expected);
    expect(maskSecrets(expected)).toBe(expected);
  });

  it.each([
    'secrets "prod/db-password" not found',
    'spec.rootPassword: Required value',
    'password: must be at least 8 characters',
    'secretName: db-password',
    'secretRef=db tokenFile=/var/run/token',
    'get pods "default/web": connect ECONNREFUSED 127.0.0.1:6443',
    'image registry.example/team/app:v1@sha256:0123',
    'https://example.org:6443/api?limit=500',
    '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----',
    'key: value, monkey=3, compass=north',
    'mail to a@b.example: done',
  ])('leaves: %s', (text) => expect(maskSecrets(text)).toBe(text));

  it('a long text costs time in proportion to its length', () => {
    const began = performance.now();
    maskSecrets('password'.repeat(50_000));
    maskSecrets(`${'a:'.repeat(100_000)}@`);
    maskSecrets('-----BEGIN PRIVATE KEY-----'.repeat(5_000));
    expect(performance.now() - began).toBeLessThan(2_000);
  });
});

describe('isSecretKey', () => {
  it.each([
    'password',
    'rootPassword',
    'DB_PASSWORD',
    'secretAccessKey',
    'accessKeyId',
    'api-key',
    'X-Auth-Token',
  ])('%s is one', (key) => expect(isSecretKey(key)).toBe(true));
  it.each([
    'secretName',
    'passwordSecretRef',
    'tokenFile',
    'key',
    'compass',
    'passwordPolicy',
    'tokenExpiry',
  ])('%s is none', (key) => expect(isSecretKey(key)).toBe(false));
});

describe('maskValue', () => {
  it('masks by field names, however deep, and texts by their content', () => {
    expect(
      maskValue({
        host: 'db',
        password: 'hunter2',
        empty: { password: '' },
        credentials: { user: 'u', any: 'v' },
        list: [{ token: 'abc' }, 'password=x'],
        port: 3306,
        pin: { secret: 1234 },
        ok: true,
        nothing: null,
      }),
    ).toEqual({
      host: 'db',
      password: '***',
      empty: { password: '' },
      credentials: { user: '***', any: '***' },
      list: [{ token: '***' }, 'password=***'],
      port: 3306,
      pin: { secret: '***' },
      ok: true,
      nothing: null,
    });
  });

  it('knows Secret objects and the environment of a container', () => {
    expect(maskValue({ kind: 'Secret', metadata: { name: 'db' }, data: { user: 'cm9vdA==' } })).toEqual({
      kind: 'Secret',
      metadata: { name: 'db' },
      data: { user: '***' },
    });
    expect(
      maskValue([
        { name: 'DB_PASSWORD', value: 'x' },
        { name: 'DB_PASSWORD', valueFrom: { secretKeyRef: { name: 'db', key: 'password' } } },
        { name: 'DB_HOST', value: 'x' },
      ]),
    ).toEqual([
      { name: 'DB_PASSWORD', value: '***' },
      { name: 'DB_PASSWORD', valueFrom: { secretKeyRef: { name: 'db', key: 'password' } } },
      { name: 'DB_HOST', value: 'x' },
    ]);
  });

  it('survives loops, errors and bytes, and changes nothing in place', () => {
    const value: Record<string, unknown> = {
      password: 'x',
      error: new Error('password=x'),
      raw: Buffer.of(1),
    };
    value['self'] = value;
    expect(maskValue(value)).toEqual({
      password: '***',
      error: 'Error: password=***',
      raw: '[1 bytes]',
      self: '[circular]',
    });
    expect(value['password']).toBe('x');
  });
});
