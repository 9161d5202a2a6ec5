{{/* Rights by name are as tight as RBAC allows: a request that creates an object has no name yet. */}}
{{- define "taskflow-operator.namespacedRules" -}}
- apiGroups: ['']
  resources: [events]
  verbs: [create, patch]
{{- range include "taskflow-operator.systems" . | fromYaml }}
{{- with .namespacedRules }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- end }}

{{/* For what has no namespace. */}}
{{- define "taskflow-operator.clusterRules" -}}
{{- if .Values.webhooks.enabled }}
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingwebhookconfigurations, validatingwebhookconfigurations]
  resourceNames: [{{ include "taskflow-operator.name" . }}]
  verbs: [get, list, watch, patch]
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingwebhookconfigurations, validatingwebhookconfigurations]
  verbs: [create]
{{- end }}
{{- range include "taskflow-operator.systems" . | fromYaml }}
{{- with .clusterRules }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- end }}

{{/* In the namespace that the operator runs in: its lease, and the Secret with its certificate. */}}
{{- define "taskflow-operator.ownRules" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ include "taskflow-operator.name" . }}]
  verbs: [get, list, watch, update]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
{{- if .Values.webhooks.enabled }}
- apiGroups: ['']
  resources: [secrets]
  resourceNames: [{{ include "taskflow-operator.webhook" . }}]
  verbs: [get, list, watch, update]
- apiGroups: ['']
  resources: [secrets]
  verbs: [create]
{{- end }}
{{- end }}

{{- define "taskflow-operator.subjects" -}}
- kind: ServiceAccount
  name: {{ include "taskflow-operator.name" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}
