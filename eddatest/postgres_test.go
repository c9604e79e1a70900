package eddatest_test

import (
	"os"
	"testing"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddatest"
	"github.com/edda-go/edda/operate"
)

func TestMain(m *testing.M) { os.Exit(eddatest.Main(m)) }

// Tests that run at the same time have separate databases, with tables of Edda and their own tables.
func TestEachTestHasItsDatabase(t *testing.T) {
	for _, name := range []string{"one", "another"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := eddatest.Pool(t)
			if _, err := pool.Exec(t.Context(), `CREATE TABLE orders (id text)`); err != nil {
				t.Fatal(err)
			}
			b, err := bus.New(pool, bus.Options{})
			if err == nil {
				err = b.InstallQueue(t.Context(), name)
			}
			if err != nil {
				t.Fatal(err)
			}
			o, err := operate.New(pool, operate.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if all, err := o.Queues().List(t.Context()); err != nil || len(all) != 1 {
				t.Errorf("%d queues, %v; want its own", len(all), err)
			}
		})
	}
}
