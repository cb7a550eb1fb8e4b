{{- define "signalbox.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "signalbox.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "signalbox.labels" -}}
{{ include "signalbox.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "signalbox.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "signalbox.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "signalbox.name" .) }}{{ else }}{{ .Values.serviceAccount.name | default "default" }}{{ end }}
{{- end }}

{{- define "signalbox.secretName" -}}
{{ .Values.secrets.existingSecret | default (include "signalbox.name" .) }}
{{- end }}

{{/* The variables that are in the Secret, as a JSON list. */}}
{{- define "signalbox.secretKeys" -}}
{{- $keys := ternary .Values.secrets.keys (keys .Values.secrets.values) (ne .Values.secrets.existingSecret "") -}}
{{- range list "DATABASE_URL" "SIGNALBOX_MASTER_KEY" -}}
{{- if not (has . $keys) -}}
{{- fail (printf "%s is missing: set secrets.values.%s, or secrets.existingSecret with a Secret that has it" . .) -}}
{{- end -}}
{{- end -}}
{{- $keys | sortAlpha | toJson -}}
{{- end }}
