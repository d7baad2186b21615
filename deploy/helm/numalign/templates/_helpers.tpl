{{- define "numalign.labels" -}}
app.kubernetes.io/name: numalign
app.kubernetes.io/part-of: numalign
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "numalign.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "numalign.policy" -}}
apiVersion: numalign.io/v1alpha1
kind: Policy
metadata: {name: helm}
spec:
{{ toYaml .Values.policy | indent 2 }}
{{- end }}

{{- define "numalign.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}
