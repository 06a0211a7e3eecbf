// Package kubernetes holds Curfew's manifests, chart and injected sidecars to the types of Kubernetes, and its compose
// files to what docker compose takes. It is a module of its own, so that Curfew does not depend on Helm,
// Kubernetes and Compose.
package kubernetes
