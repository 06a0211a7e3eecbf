// Package starvation finds out whether this process gets a processor.
package starvation
