// Package inject adds Curfew as a native sidecar to Kubernetes manifests.
//
// It changes the pod of a Pod, Deployment, StatefulSet, DaemonSet, ReplicaSet, Job or
// CronJob, also inside a List, and copies everything else byte by byte. In objects that it
// changes, unknown fields, the order of fields and comments stay as they are. It replaces what
// it added before, so injecting again changes only what the options and annotations have
// changed.
//
// The application then reaches Curfew at 127.0.0.1:5672 as guest. Annotations of the pod,
// or of the object that makes the pods, override the defaults:
//
//	curfew.dev/inject           "false": do not change this object
//	curfew.dev/image            image of the sidecar
//	curfew.dev/env              YAML mapping of CURFEW_ and OTEL_ variables to values
//	curfew.dev/env-from-secret  name of a Secret with such variables
//	curfew.dev/volume           volume of the pod in which messages are stored
//	curfew.dev/claim            PersistentVolumeClaim in which they are stored, for a workload with a single pod
//	curfew.dev/cpu-request, cpu-limit, memory-request, memory-limit
//
// Without volume and claim, a StatefulSet gets a claim template, and so each of its pods
// gets a claim. Other pods get an emptyDir, which is deleted with the pod; Injector.Notes
// point that out.
//
// The pod gets the label curfew.dev/injected, which PodMonitors select. A pod without a
// termination grace period gets one minute, for the application and for Curfew, which is
// stopped after it.
package inject
