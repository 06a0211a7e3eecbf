// Package scheduler says what a schedule of deadlines is.
package scheduler
