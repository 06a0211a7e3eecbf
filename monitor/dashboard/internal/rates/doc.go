// Package rates computes messages a second from totals that are sampled while a page is open.
package rates
