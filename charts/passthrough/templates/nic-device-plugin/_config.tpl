{{/* The configuration, which the exporter reads as well. All are optional, and may come later. */}}
{{- define "passthrough.nicConfigVolumes" -}}
- name: config
  configMap:
    name: {{ .Values.nicDevicePlugin.configMapName }}
    optional: true
- name: sriovdp-config
  configMap:
    name: {{ .Values.nicDevicePlugin.sriovConfigMapName }}
    optional: true
- name: rdma-devices
  configMap:
    name: {{ .Values.nicDevicePlugin.rdmaConfigMapName }}
    optional: true
{{- end }}
