{{/*
Devices of a node are given out by device plugins or by the DRA driver, never by both: one device would be given
to two pods. So the pods of the two must not be able to meet on a node. What keeps them apart is in nodeSelector
and in the required node affinity, of which all alternatives are held against each other.
*/}}

{{/* The alternatives of a component: a list of lists of requirements, as JSON. nodeSelector is part of each. */}}
{{- define "passthrough.alternatives" -}}
{{- $fixed := list -}}
{{- range $key, $value := .nodeSelector -}}
{{- $fixed = append $fixed (dict "key" $key "operator" "In" "values" (list $value)) -}}
{{- end -}}
{{- $terms := list (dict) -}}
{{- with (dig "nodeAffinity" "requiredDuringSchedulingIgnoredDuringExecution" "nodeSelectorTerms" list (.affinity | default dict)) -}}
{{- $terms = . -}}
{{- end -}}
{{- $all := list -}}
{{- range $terms -}}
{{- $all = append $all (concat $fixed (.matchExpressions | default list)) -}}
{{- end -}}
{{- toJson $all -}}
{{- end }}

{{/* "true" if two requirements of one label cannot both be met, seen from the first. */}}
{{- define "passthrough.contradicts" -}}
{{- $a := first . -}}
{{- $b := last . -}}
{{- $values := $a.values | default list -}}
{{- $others := $b.values | default list -}}
{{- if eq $a.operator "In" -}}
{{- $left := list -}}
{{- range $values -}}
{{- if or (eq $b.operator "DoesNotExist") (and (eq $b.operator "In") (not (has . $others))) (and (eq $b.operator "NotIn") (has . $others)) -}}
{{- else -}}
{{- $left = append $left . -}}
{{- end -}}
{{- end -}}
{{- if not $left }}true{{ end -}}
{{- else if and (eq $a.operator "Exists") (eq $b.operator "DoesNotExist") }}true
{{- end -}}
{{- end }}

{{/* "true" if there can be a node for both of two components. */}}
{{- define "passthrough.meet" -}}
{{- $meet := false -}}
{{- $others := include "passthrough.alternatives" (last .) | fromJsonArray -}}
{{- range $mine := include "passthrough.alternatives" (first .) | fromJsonArray -}}
{{- range $theirs := $others -}}
{{- $apart := false -}}
{{- range $a := $mine -}}
{{- range $b := $theirs -}}
{{- if eq $a.key $b.key -}}
{{- if or (include "passthrough.contradicts" (list $a $b)) (include "passthrough.contradicts" (list $b $a)) -}}
{{- $apart = true -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if not $apart }}{{ $meet = true }}{{ end -}}
{{- end -}}
{{- end -}}
{{- if $meet }}true{{ end -}}
{{- end }}
