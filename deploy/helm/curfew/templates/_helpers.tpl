{{- define "curfew.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}{{- .Release.Name | trunc 52 | trimSuffix "-" -}}{{- else -}}{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}{{- end -}}
{{- end -}}
{{- end -}}

{{- define "curfew.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "curfew.metadata" -}}
name: {{ include "curfew.fullname" . }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "curfew.selector" . | nindent 2 }}
  app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ .Release.Service }}
  helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* Not empty: the queues are RabbitMQ's, and this Curfew has no broker of its own. */}}
{{- define "curfew.beside" -}}
{{- if or .Values.primary.url .Values.primary.existingSecret }}true{{ end -}}
{{- end -}}

{{/* The variables that are secrets, in JSON. */}}
{{- define "curfew.secrets" -}}
{{- $secrets := deepCopy .Values.secrets -}}
{{- with .Values.primary.url }}{{ $_ := set $secrets "CURFEW_PRIMARY_URL" . }}{{ end -}}
{{- with .Values.primary.apiUrl }}{{ $_ := set $secrets "CURFEW_PRIMARY_API_URL" . }}{{ end -}}
{{- toJson $secrets -}}
{{- end -}}

{{- define "curfew.environment" -}}
{{- $env := dict "CURFEW_HTTP_ADDR" ":15672" "CURFEW_OPS_ADDR" ":15692" -}}
{{- if .Values.tls.secretName -}}
{{- $env = merge $env (dict "CURFEW_HTTPS_ADDR" ":15671" "CURFEW_TLS_CERT" "/etc/curfew/tls/tls.crt" "CURFEW_TLS_KEY" "/etc/curfew/tls/tls.key") -}}
{{- end -}}
{{- if include "curfew.beside" . -}}
{{- $_ := set $env "CURFEW_DATA_DIR" "" -}}
{{- with .Values.primary.watch -}}{{- $_ := set $env "CURFEW_WATCH" . -}}{{- end -}}
{{- if .Values.primary.watchFile -}}{{- $_ := set $env "CURFEW_WATCH" "/etc/curfew/files/watch.yaml" -}}{{- end -}}
{{- else -}}
{{- $env = merge $env (dict "CURFEW_AMQP_ADDR" ":5672" "CURFEW_DATA_DIR" "/var/lib/curfew/data") -}}
{{- if .Values.tls.secretName -}}{{- $_ := set $env "CURFEW_AMQPS_ADDR" ":5671" -}}{{- end -}}
{{- end -}}
{{- if .Values.definitions -}}{{- $_ := set $env "CURFEW_DEFINITIONS" "/etc/curfew/files/definitions.json" -}}{{- end -}}
{{- if .Values.alerts -}}{{- $_ := set $env "CURFEW_ALERTS" "/etc/curfew/files/alerts.yaml" -}}{{- end -}}
{{- range $name, $value := mergeOverwrite $env .Values.config }}
- name: {{ $name }}
  value: {{ if kindIs "float64" $value }}{{ int64 $value | quote }}{{ else }}{{ toString $value | quote }}{{ end }}
{{- end }}
{{- if not (hasKey .Values.config "CURFEW_INSTANCE") }}
- name: CURFEW_INSTANCE
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
{{- end }}
{{- end -}}
