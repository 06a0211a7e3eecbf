// Package testenv is what tests of several packages need around them: StartRedis, a real Redis server that can be killed, paused
// and restarted; FreeAddr, a free port; Log, what a process writes; Eventually and Poll, which wait; Quick and InProportion, which
// measure processor time; Curfew, the binary that users run; Authority, which signs certificates; Setenv, an environment of the test's own. A missing redis-server
// fails the test with the command that installs it.
package testenv
