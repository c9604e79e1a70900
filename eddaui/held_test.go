package eddaui_test

import (
	"encoding/json"
	"regexp"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddaui"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5/pgxpool"
)

type (
	build  struct{ Wall string }
	lay    struct{ Wall string }
	laying struct{}
)

func (build) Kind() string { return "wall.build" }
func (lay) Kind() string   { return "brick.lay" }

// builds is a saga that has a brick laid.
func builds() *saga.Definition {
	return saga.Define("wall", saga.Options{},
		saga.StartedBy(func(m build) string { return m.Wall }, func(_ *laying, ctx *saga.Context, m build) error {
			ctx.Send(lay(m))
			return nil
		}))
}

// buildWall begins a wall, and returns when a worker of the endpoint robots has its brick in hand, for as long as the
// test lasts.
func buildWall(t *testing.T, pool *pgxpool.Pool, schema string) {
	t.Helper()
	b, err := bus.New(pool, bus.Options{Schema: schema, AutoInstall: true})
	if err != nil {
		t.Fatal(err)
	}
	held, let := make(chan struct{}), make(chan struct{})
	group := run.NewGroup(t.Context())
	start := func(name string, o bus.EndpointOptions, parts ...bus.Part) {
		t.Helper()
		e, err := bus.NewEndpoint(b, name, o, parts...)
		if err == nil {
			err = e.Install(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		group.Go(e.Run)
	}
	start("walls", bus.EndpointOptions{}, bus.Saga(builds()))
	start("robots", bus.EndpointOptions{Lease: time.Minute}, bus.Handle(func(*bus.Context, lay) error {
		close(held)
		<-let
		return nil
	}))
	t.Cleanup(func() {
		close(let)
		group.Stop()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	})
	if _, err := b.Send(t.Context(), build{Wall: "7"}); err != nil {
		t.Fatal(err)
	}
	<-held
}

// A message that a process holds under a lease says whose it is and when the lease ends: on the page of the instance
// that waits for it, and on its own.
func TestWhatIsHeldSaysByWhomAndUntilWhen(t *testing.T) {
	t.Parallel()
	pool, schema := newSchema(t)
	buildWall(t, pool, schema)
	s := serve(t, pool, schema, eddaui.Options{})
	says := regexp.MustCompile(`\S+ \(process \d+\) has it in hand for robots; its lease ends in (\d+s|1m0s), at ` +
		`[-0-9: .]+Z, unless it is extended\.`)
	var got struct {
		Waits []struct{ State, Message, Says string }
	}
	if err := json.Unmarshal([]byte(s.get("/sagas/wall/7.json")), &got); err != nil || len(got.Waits) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	w := got.Waits[0]
	var one struct {
		Places []struct{ State, Says, Process, Until string }
	}
	if err := json.Unmarshal([]byte(s.get("/messages/"+w.Message+".json")), &one); err != nil {
		t.Fatal(err)
	}
	if w.State != "in hand" || says.FindString(w.Says) != w.Says || len(one.Places) != 1 {
		t.Fatalf("the instance waits for %+v, which is at %+v", w, one)
	}
	p := one.Places[0]
	until, err := time.Parse(time.RFC3339, p.Until)
	if left := time.Until(until); err != nil || left <= 0 || left > time.Minute || p.Process == "" ||
		says.FindString(p.Says) != p.Says || p.State != "in hand" {
		t.Errorf("the message is at %+v", p)
	}
	for _, path := range []string{"/sagas/wall/7", "/messages/" + w.Message} {
		if body := s.get(path); !says.MatchString(body) {
			t.Errorf("%s does not say where it is:\n%s", path, body)
		}
	}
}
