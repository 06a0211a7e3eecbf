// Package alerts is the page of alerts and silences.
package alerts
