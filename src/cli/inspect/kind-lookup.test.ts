import { describe, expect, it } from 'vitest';
import type { ApiResource } from '../../kube/discovery.ts';
import { defineResource, resourceName } from '../../kube/resource-type.ts';
import { findKind, findKinds, kindsOfCategory } from './kind-lookup.ts';

function resource(apiVersion: string, kind: string, more: Partial<ApiResource> = {}): ApiResource {
  const plural = `${kind.toLowerCase()}s`;
  return {
    type: defineResource(apiVersion, kind, plural, 'Namespaced'),
    preferred: true,
    singular: kind.toLowerCase(),
    shortNames: [],
    categories: [],
    verbs: ['get', 'list', 'watch'],
    subresources: ['status'],
    ...more,
  };
}

const OURS = { categories: ['taskflow'] };
const RESOURCES = [
  resource('v1', 'Pod', { shortNames: ['po'], categories: ['all'] }),
  resource('other.io/v1', 'Backup'),
  resource('ours.dev/v1', 'Backup', OURS),
  resource('ours.dev/v1alpha1', 'Backup', { ...OURS, preferred: false }),
  resource('ours.dev/v1', 'Voyage', { ...OURS, shortNames: ['vy'] }),
  resource('ours.dev/v1', 'Route', OURS),
  resource('more.dev/v1', 'Route', OURS),
  resource('v1', 'Binding', { verbs: ['create'] }),
];

describe('which kind is meant', () => {
  it.each([
    ['Voyage', 'voyages.ours.dev'],
    ['voyage', 'voyages.ours.dev'],
    ['voyages', 'voyages.ours.dev'],
    ['vy', 'voyages.ours.dev'],
    ['voyages.ours.dev', 'voyages.ours.dev'],
    ['Voyage.v1.ours.dev', 'voyages.ours.dev'],
    ['po', 'pods'],
    // Of several kinds with one name ours is meant.
    ['backup', 'backups.ours.dev'],
    ['backup.other.io', 'backups.other.io'],
  ])('%s is %s', (word, expected) => {
    expect(resourceName(findKind(RESOURCES, word).type)).toBe(expected);
  });

  it('another version than the preferred one must be named', () => {
    expect(findKind(RESOURCES, 'backups.ours.dev').type.version).toBe('v1');
    expect(findKind(RESOURCES, 'backups.v1alpha1.ours.dev').type.version).toBe('v1alpha1');
  });

  it('a list of kinds, or a category', () => {
    const names = (words: string) => findKinds(RESOURCES, words).map(({ type }) => resourceName(type));
    expect(names('pods,vy')).toEqual(['pods', 'voyages.ours.dev']);
    expect(names('all')).toEqual(['pods']);
    expect(kindsOfCategory(RESOURCES)).toHaveLength(4);
  });

  it.each([
    ['voiage', /no kind "voiage"; did you mean voyage\?[\s\S]*kubectl get crd[\s\S]*routes/],
    ['xy', /no kind "xy"\n/],
    ['route', /may be any of routes.ours.dev, routes.more.dev/],
    ['binding', /no kind "binding"/],
  ])('%s is an error that helps', (word, message) => {
    expect(() => findKind(RESOURCES, word)).toThrow(message);
  });
});
