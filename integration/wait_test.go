package integration

import (
	"sync"

	"curfew/integration/testenv"
)

// busyMachine is held, of the tests that run beside others, by the one that keeps the machine busy.
var busyMachine sync.Mutex

// check, eventually and poll are what tests wait and fail with.
var check, eventually, poll = testenv.Check, testenv.Eventually, testenv.Poll
