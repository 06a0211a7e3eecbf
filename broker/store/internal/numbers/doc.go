// Package numbers has sets of segment numbers that are small in memory: a Set of scattered numbers, and
// Spans of mostly consecutive ones.
package numbers
