// Package memstore keeps a schedule in the memory of this process.
package memstore
