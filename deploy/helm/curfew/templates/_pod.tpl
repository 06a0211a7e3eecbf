{{/* The pod of the StatefulSet, and of the Deployment beside RabbitMQ, which has no broker and so no data. */}}
{{- define "curfew.pod" -}}
{{- $beside := include "curfew.beside" . -}}
metadata:
  labels:
    {{- include "curfew.selector" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    checksum/files: {{ printf "%s%s%s%s" .Values.definitions .Values.alerts .Values.primary.watchFile (include "curfew.secrets" .) | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  {{- with .Values.image.pullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: curfew
      image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      env:
        {{- include "curfew.environment" . | trim | nindent 8 }}
      envFrom:
        {{- if .Values.existingSecret }}
        - secretRef:
            name: {{ .Values.existingSecret }}
        {{- end }}
        {{- with .Values.primary.existingSecret }}
        - secretRef:
            name: {{ . }}
        {{- end }}
        {{- if ne (include "curfew.secrets" .) "{}" }}
        - secretRef:
            name: {{ include "curfew.fullname" . }}
        {{- end }}
      ports:
        {{- if not $beside }}
        - name: amqp
          containerPort: 5672
        {{- end }}
        - name: http
          containerPort: 15672
        - name: metrics
          containerPort: 15692
        {{- if .Values.tls.secretName }}
        {{- if not $beside }}
        - name: amqps
          containerPort: 5671
        {{- end }}
        - name: https
          containerPort: 15671
        {{- end }}
      {{- if not $beside }}
      startupProbe:
        httpGet:
          path: /readyz
          port: metrics
        periodSeconds: 1
        failureThreshold: 600
      {{- end }}
      readinessProbe:
        httpGet:
          path: /readyz
          port: metrics
        periodSeconds: 5
      livenessProbe:
        httpGet:
          path: /healthz
          port: metrics
        periodSeconds: 10
        timeoutSeconds: 5
      {{- if not $beside }}
      lifecycle:
        preStop:
          sleep:
            seconds: 5
      {{- end }}
      {{- with .Values.resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop:
            - ALL
      volumeMounts:
        {{- if not $beside }}
        - name: data
          mountPath: /var/lib/curfew
        {{- end }}
        {{- if or .Values.definitions .Values.alerts .Values.primary.watchFile }}
        - name: files
          mountPath: /etc/curfew/files
          readOnly: true
        {{- end }}
        {{- if .Values.tls.secretName }}
        - name: tls
          mountPath: /etc/curfew/tls
          readOnly: true
        {{- end }}
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    {{- if not (or $beside .Values.persistence.enabled) }}
    - name: data
      emptyDir: {}
    {{- end }}
    {{- if or .Values.definitions .Values.alerts .Values.primary.watchFile }}
    - name: files
      configMap:
        name: {{ include "curfew.fullname" . }}
    {{- end }}
    {{- with .Values.tls.secretName }}
    - name: tls
      secret:
        secretName: {{ . }}
        defaultMode: 288 # 0440
    {{- end }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if $beside }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "curfew.selector" . | nindent 10 }}
  {{- end }}
{{- end -}}
