// Package format writes numbers, sizes, durations, instants and names as the pages show them.
//
// Times are in UTC. A name that a client chose has its control characters escaped and its length
// bounded; escaping it for HTML is left to the page.
package format
