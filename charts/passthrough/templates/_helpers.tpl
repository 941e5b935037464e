{{/*
Every template here is about one component and is given a dict of
  root       the chart's own context
  values     the values of the component
  program    the name of the program, which is that of the image's entry point and of the directories
  component  what it is, for the label
*/}}

{{- define "passthrough.name" -}}
{{- .values.nameOverride | default .program -}}
{{- end }}

{{- define "passthrough.fullname" -}}
{{- .values.fullnameOverride | default (include "passthrough.name" .) -}}
{{- end }}

{{/* The one label that selects pods. A selector never changes, so nothing is ever added here. */}}
{{- define "passthrough.selector" -}}
app.kubernetes.io/name: {{ include "passthrough.name" . }}
{{- end }}

{{/* Labels of pods. None of them changes with the chart's version, which would restart every pod. */}}
{{- define "passthrough.podLabels" -}}
{{- $own := dict "app.kubernetes.io/name" (include "passthrough.name" .) "app.kubernetes.io/component" .component "app.kubernetes.io/part-of" "passthrough" -}}
{{- mergeOverwrite (dict) (.root.Values.commonLabels | default dict) (.values.podLabels | default dict) $own | toYaml -}}
{{- end }}

{{/* A text as the value of a label, which has 63 characters at most and ends with a letter or a number. */}}
{{- define "passthrough.labelValue" -}}
{{- regexReplaceAll "[^A-Za-z0-9]+$" (replace "+" "_" . | trunc 63) "" -}}
{{- end }}

{{- define "passthrough.labels" -}}
{{- $own := dict
  "app.kubernetes.io/name" (include "passthrough.name" .)
  "app.kubernetes.io/component" .component
  "app.kubernetes.io/part-of" "passthrough"
  "app.kubernetes.io/instance" .root.Release.Name
  "app.kubernetes.io/version" (include "passthrough.labelValue" .root.Chart.AppVersion)
  "app.kubernetes.io/managed-by" .root.Release.Service
  "helm.sh/chart" (include "passthrough.labelValue" (printf "%s-%s" .root.Chart.Name .root.Chart.Version)) -}}
{{- mergeOverwrite (dict) (.root.Values.commonLabels | default dict) $own | toYaml -}}
{{- end }}

{{- define "passthrough.image" -}}
{{- $image := .values.image -}}
{{- with .root.Values.imageRegistry }}{{ . }}/{{ end -}}
{{- $image.repository -}}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default .root.Chart.AppVersion }}{{ end -}}
{{- end }}

{{- define "passthrough.serviceAccountName" -}}
{{- if .values.serviceAccount.create -}}
{{- .values.serviceAccount.name | default (include "passthrough.fullname" .) -}}
{{- else -}}
{{- .values.serviceAccount.name -}}
{{- end -}}
{{- end }}

{{/*
The objects of a file that deploy/ has as well, with the labels of this release. "from" and "to" are what is
another here than there.
*/}}
{{- define "passthrough.objects" -}}
{{- $labels := include "passthrough.labels" . | fromYaml -}}
{{- $text := .root.Files.Get .file -}}
{{- range .replace }}{{ $text = replace .from .to $text }}{{ end -}}
{{- range splitList "\n---\n" $text }}
{{- $object := fromYaml . }}
{{- if hasKey $object "Error" }}{{ fail $object.Error }}{{ end }}
{{- $_ := set $object.metadata "labels" (mergeOverwrite (dict) ($object.metadata.labels | default dict) $labels) }}
---
{{ toYaml $object }}
{{- end }}
{{- end }}

{{/* How Prometheus speaks to a port with TLS or passwords. The context is podMonitor of a component. */}}
{{- define "passthrough.scrape" -}}
{{- $how := dict -}}
{{- if ne .scheme "http" }}{{ $_ := set $how "scheme" .scheme }}{{ end -}}
{{- with .tlsConfig }}{{ $_ := set $how "tlsConfig" . }}{{ end -}}
{{- with .basicAuth }}{{ $_ := set $how "basicAuth" . }}{{ end -}}
{{- with $how }}{{ toYaml . }}{{ end -}}
{{- end }}
