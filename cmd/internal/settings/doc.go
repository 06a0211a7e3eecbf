// Package settings reads Curfew's configuration from the environment: the variables with the prefix CURFEW_,
// which are the fields of Settings, and those of OpenTelemetry's that decide what is sent. Nothing outside cmd
// reads the environment.
//
// An invalid value and a variable that does not exist are refused. The error names the variable, its value (except for secrets) and what is valid. All mistakes are reported at once.
//
// OpenTelemetry's variables (otelVariables) are ignored unless one of them turns sending on, since they may be meant
// for another application in the same pod. If one does, invalid values are refused, and variables that Curfew
// does not know are named in the log.
//
// The tables of variables in docs/reference/configuration.md are what WriteMarkdown writes.
package settings
