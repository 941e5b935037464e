{{/* What the pods of all programs have in common. Each line has its reason in the manifests of deploy/. */}}

{{- define "passthrough.daemonset" -}}
selector:
  matchLabels:
    {{- include "passthrough.selector" . | nindent 4 }}
minReadySeconds: 10
updateStrategy:
  {{- toYaml .values.updateStrategy | nindent 2 }}
{{- end }}

{{- define "passthrough.podMetadata" -}}
labels:
  {{- include "passthrough.podLabels" . | nindent 2 }}
{{- with mergeOverwrite (dict) (.values.podAnnotations | default dict) (.annotations | default dict) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "passthrough.place" -}}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with include "passthrough.serviceAccountName" . }}
serviceAccountName: {{ . }}
{{- end }}
{{- end }}

{{- define "passthrough.container" -}}
image: {{ include "passthrough.image" . | quote }}
imagePullPolicy: {{ .values.image.pullPolicy }}
securityContext:
  runAsUser: 0
  runAsGroup: 0
  runAsNonRoot: false
  privileged: false
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop:
      - ALL
  seccompProfile:
    type: RuntimeDefault
  {{- with .values.seLinuxOptions }}
  seLinuxOptions:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- with .values.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
startupProbe:
  exec:
    command:
      - /grpc_health_probe
      - -addr=unix:///run/{{ .program }}/health.sock
      - -service=liveness
  periodSeconds: 2
  timeoutSeconds: 3
  failureThreshold: 30
livenessProbe:
  exec:
    command:
      - /grpc_health_probe
      - -addr=unix:///run/{{ .program }}/health.sock
      - -service=liveness
  periodSeconds: 30
  timeoutSeconds: 3
  failureThreshold: 4
readinessProbe:
  exec:
    command:
      - /grpc_health_probe
      - -addr=unix:///run/{{ .program }}/health.sock
  periodSeconds: 10
  timeoutSeconds: 3
  failureThreshold: 2
{{- end }}

{{/* The node's name, for those whose arguments have it: a file for each node, as the SR-IOV network operator writes. */}}
{{- define "passthrough.nodeName" -}}
{{- if contains "$(NODE_NAME)" (join " " .values.extraArgs) -}}
env:
  - name: NODE_NAME
    valueFrom:
      fieldRef:
        fieldPath: spec.nodeName
{{- end }}
{{- end }}

{{/* The health socket. In memory, since the root is read-only and a socket needs no disk. */}}
{{- define "passthrough.runMount" -}}
- name: run
  mountPath: /run/{{ .program }}
{{- end }}

{{- define "passthrough.runVolume" -}}
- name: run
  emptyDir:
    medium: Memory
    sizeLimit: 64Ki
{{- end }}

{{/* TLS and passwords of the port of metrics. */}}
{{- define "passthrough.webMount" -}}
{{- if .values.webConfigSecret -}}
- name: web
  mountPath: /etc/web
  readOnly: true
{{- end }}
{{- end }}

{{- define "passthrough.webVolume" -}}
{{- with .values.webConfigSecret -}}
- name: web
  secret:
    secretName: {{ . }}
    defaultMode: 0400
{{- end }}
{{- end }}
