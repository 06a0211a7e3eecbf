// Package rates computes messages a second from totals that are sampled while somebody looks.
package rates
