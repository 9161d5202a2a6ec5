{{/*
One operator per cluster: its kinds and its webhook configurations have no namespace. So the names are fixed and
do not follow the release; a second release is refused by Helm itself, because the objects are another's.
*/}}
{{- define "taskflow-operator.name" -}}
taskflow-operator
{{- end }}

{{- define "taskflow-operator.webhook" -}}
taskflow-operator-webhook
{{- end }}

{{/* A Deployment's selector can never change: nothing may be added here. */}}
{{- define "taskflow-operator.selectorLabels" -}}
app.kubernetes.io/name: taskflow-operator
app.kubernetes.io/instance: taskflow-operator
{{- end }}

{{- define "taskflow-operator.podLabels" -}}
{{ include "taskflow-operator.selectorLabels" . }}
app.kubernetes.io/part-of: taskflow-operator
{{- end }}

{{- define "taskflow-operator.labels" -}}
{{ include "taskflow-operator.podLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{/* The chosen systems with their rules (files/systems.yaml), as a YAML mapping; an unknown name is an error. */}}
{{- define "taskflow-operator.systems" -}}
{{- $known := .Files.Get "files/systems.yaml" | fromYaml -}}
{{- $chosen := dict -}}
{{- range .Values.systems | default (keys $known) -}}
{{- if not (hasKey $known .) -}}
{{- fail (printf "systems: there is no system %q (there are: %s)" . (keys $known | sortAlpha | join ", " | default "none")) -}}
{{- end -}}
{{- $_ := set $chosen . (get $known .) -}}
{{- end -}}
{{- toYaml $chosen -}}
{{- end }}

{{/* What the operator reads at its start. What has to agree with its rights wins over .Values.config. */}}
{{- define "taskflow-operator.settings" -}}
{{- $name := include "taskflow-operator.name" . -}}
{{- $webhook := include "taskflow-operator.webhook" . -}}
{{- $webhooks := dict "enabled" false -}}
{{- if .Values.webhooks.enabled -}}
{{- $webhooks = dict "enabled" true "secret" $webhook "service" $webhook -}}
{{- end -}}
{{- $fixed := dict
      "leaderElection" (dict "name" $name "namespace" .Release.Namespace)
      "namespaces" .Values.namespaces
      "systems" (include "taskflow-operator.systems" . | fromYaml | keys | sortAlpha)
      "webhooks" $webhooks -}}
{{- mergeOverwrite (deepCopy .Values.config) $fixed | toYaml -}}
{{- end }}
