// Package inject adds Curfew as a native sidecar to manifests of Kubernetes.
//
// It changes the pod of a Pod, Deployment, StatefulSet, DaemonSet, ReplicaSet, Job or CronJob, also
// inside a List, and passes everything else on as it is, byte by byte. In what it changes, fields it
// does not know, their order and comments stay. What it has made it makes anew, so injecting again
// changes nothing but what the options and annotations say now.
//
// The application then finds Curfew on 127.0.0.1:5672 as guest. Annotations of the pod, or of what
// makes the pods, say otherwise:
//
//	curfew.dev/inject           "false": this one is passed on as it is
//	curfew.dev/image            image of the sidecar
//	curfew.dev/env              YAML mapping of CURFEW_ and OTEL_ variables to values
//	curfew.dev/env-from-secret  name of a Secret with such variables
//	curfew.dev/volume           volume of the pod that keeps the messages
//	curfew.dev/claim            PersistentVolumeClaim that keeps them, of one workload with one pod
//	curfew.dev/cpu-request, cpu-limit, memory-request, memory-limit
//
// Without the last two a StatefulSet gets a claim template, and so each of its pods a claim. Other pods
// get an emptyDir, which is gone with the pod; Injector.Notes say so.
//
// curfew.dev/injected, a label that PodMonitors select by, is put on the pod. A pod that does not
// say how long its stop may take is given a minute: the application's time and Curfew's, which is
// stopped after it, together.
package inject
