/** Which kind a user means: by Kind, plural, singular, short name, `plural.group` or category, as kubectl has it. */
import type { ApiResource } from '../../kube/discovery.ts';
import { resourceName } from '../../kube/resource-type.ts';
import { nearest } from '../../runtime/config/nearest.ts';
import { UserError } from '../user-error.ts';

/** Every kind with task flows is in it. */
export const CATEGORY = 'taskflow';

export function kindsOfCategory(resources: readonly ApiResource[], category = CATEGORY): ApiResource[] {
  return listable(resources).filter(({ categories }) => categories.includes(category));
}

/** One or more kinds: names separated by commas, or a category. */
export function findKinds(resources: readonly ApiResource[], words: string): ApiResource[] {
  return words.split(',').flatMap((word) => {
    const members = kindsOfCategory(resources, word);
    return matching(resources, word).length === 0 && members.length > 0
      ? members
      : [findKind(resources, word)];
  });
}

export function findKind(resources: readonly ApiResource[], word: string): ApiResource {
  const found = matching(resources, word);
  const ours = found.filter(({ categories }) => categories.includes(CATEGORY));
  if (ours.length > 1)
    throw new UserError(
      `"${word}" may be any of ${ours.map(({ type }) => resourceName(type)).join(', ')}: name one of them`,
    );
  const chosen = ours[0] ?? found[0];
  if (!chosen) throw unknownKind(resources, word);
  return chosen;
}

function matching(resources: readonly ApiResource[], word: string): ApiResource[] {
  const wanted = word.toLowerCase();
  const named = listable(resources).filter((resource) => namesOf(resource).includes(wanted));
  return named.length > 0 ? named : resources.filter((resource) => versionedNames(resource).includes(wanted));
}

/** Only the preferred version of each: any version shows all objects. */
function listable(resources: readonly ApiResource[]): ApiResource[] {
  return resources.filter(({ preferred, verbs }) => preferred && verbs.includes('list'));
}

function namesOf(resource: ApiResource): string[] {
  const names = [...baseNames(resource), ...resource.shortNames];
  const { group } = resource.type;
  return group === '' ? names : [...names, ...names.map((name) => `${name}.${group}`)];
}

/** `widgets.v1alpha1.example.com`, for who wants another version than the preferred one. */
function versionedNames(resource: ApiResource): string[] {
  const { version, group } = resource.type;
  return baseNames(resource).map((name) => `${name}.${version}.${group}`);
}

function baseNames({ type, singular }: ApiResource): string[] {
  return [...new Set([type.plural, singular, type.kind.toLowerCase()])].filter((name) => name !== '');
}

function unknownKind(resources: readonly ApiResource[], word: string): UserError {
  const ours = kindsOfCategory(resources);
  const guess = guessAmong(ours, word) ?? guessAmong(listable(resources), word);
  const known = ours.map(({ type }) => type.plural).toSorted();
  return new UserError(
    `the cluster has no kind "${word}"${guess === undefined ? '' : `; did you mean ${guess}?`}\n` +
      'Is it installed? See: kubectl get crd\n' +
      (known.length === 0
        ? 'No kind with task flows is installed: taskflow install brings them.'
        : `Kinds with task flows here: ${known.join(', ')}`),
  );
}

/** Short names are all alike; next to them any word is near. */
function guessAmong(resources: readonly ApiResource[], word: string): string | undefined {
  const [name = ''] = word.split('.');
  return name.length < 3 ? undefined : nearest(name, resources.flatMap(baseNames));
}
