import { describe, expect, it } from 'vitest';
import { apiErrorFrom, ConnectionError, DeadlineExceeded, Invalid } from './errors.ts';

const ATTEMPT = { verb: 'patch', resource: 'pods/status', object: 'default/web' };

describe('errors of the API', () => {
  it.each([
    [401, '', 'Unauthorized'],
    [403, '', 'Forbidden'],
    [404, '', 'NotFound'],
    [409, 'AlreadyExists', 'AlreadyExists'],
    [409, 'Conflict', 'Conflict'],
    [410, 'Expired', 'Gone'],
    [422, 'Invalid', 'Invalid'],
    [429, '', 'TooManyRequests'],
    [500, '', 'ApiError'],
  ])('%d %s is %s', (code, reason, name) => {
    const error = apiErrorFrom(ATTEMPT, code, { reason, message: 'because' });
    expect(error.name).toBe(name);
    expect(error.message).toBe('patch pods/status "default/web": because');
  });

  it('lists causes that the message does not name', () => {
    const causes = [
      { field: 'spec.a', message: 'Required value' },
      { field: 'spec.b', message: 'must be positive' },
    ];
    const error = apiErrorFrom(ATTEMPT, 422, { message: 'spec.a: Required value', details: { causes } });
    expect(error).toBeInstanceOf(Invalid);
    expect((error as Invalid).causes).toEqual(causes);
    expect(error.message).toMatch(/"default\/web": spec.a: Required value; spec.b: must be positive$/);
  });

  it('says which try it was', () => {
    const error = apiErrorFrom({ ...ATTEMPT, retries: 2 }, 409, { message: 'changed' });
    expect(error.message).toBe('patch pods/status "default/web" (try 3): changed');
    expect(error.retries).toBe(2);
  });

  it('a server without words is named by its code', () => {
    expect(apiErrorFrom({ verb: 'list', resource: 'pods' }, 502, {}).message).toBe('list pods: HTTP 502');
  });

  it('connections name the code of the system', () => {
    const reset = Object.assign(new Error('other side closed'), { code: 'UND_ERR_SOCKET' });
    expect(new ConnectionError(ATTEMPT, reset).message).toContain('other side closed (UND_ERR_SOCKET)');
    expect(new DeadlineExceeded(ATTEMPT, 1_500).message).toContain('no answer within 1.5 s');
    expect(new DeadlineExceeded(ATTEMPT, 1)).toBeInstanceOf(ConnectionError);
  });
});
