package memstore_test

import (
	"testing"

	"curfew/scheduler"
	"curfew/scheduler/memstore"
	"curfew/scheduler/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) scheduler.Store { return memstore.New() })
}
