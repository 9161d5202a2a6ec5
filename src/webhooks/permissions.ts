/** What serving webhooks takes, for the operator's roles. */
import type { RbacRule } from '../kube/schema/rbac.ts';

/** To keep the configurations of this name. */
export function configurationRules(name: string): readonly RbacRule[] {
  const apiGroups = ['admissionregistration.k8s.io'];
  const resources = ['mutatingwebhookconfigurations', 'validatingwebhookconfigurations'];
  return [
    {
      apiGroups,
      resources,
      resourceNames: [name],
      verbs: ['get', 'list', 'watch', 'patch'],
      scope: 'Cluster',
    },
    { apiGroups, resources, verbs: ['create'], scope: 'Cluster' },
  ];
}

/** To keep the certificate in a Secret of this name, in the operator's own namespace. */
export function certificateRules(secretName: string): readonly RbacRule[] {
  return [
    {
      apiGroups: [''],
      resources: ['secrets'],
      resourceNames: [secretName],
      verbs: ['get', 'list', 'watch', 'update'],
    },
    { apiGroups: [''], resources: ['secrets'], verbs: ['create'] },
  ];
}
