// Package kubernetes holds Curfew's manifests, chart and injected sidecars to the types of Kubernetes. It is a module of its own, so that
// Helm and Kubernetes are no dependencies of Curfew's.
package kubernetes
