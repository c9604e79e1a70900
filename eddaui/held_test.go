package eddaui_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddaui"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/limit"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

type (
	build  struct{ Wall string }
	lay    struct{ Wall string }
	laying struct{}

	inspect struct{}
)

func (build) Kind() string { return "wall.build" }
func (lay) Kind() string   { return "brick.lay" }

func (inspect) Kind() string { return "wall.inspect" }

// builds is a saga that sends a command to lay a brick.
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
	start("robots", bus.EndpointOptions{Lease: time.Minute, ClusterConcurrency: 3},
		bus.Handle(func(*bus.Context, lay) error {
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
	inspects := make(chan struct{})
	start("inspectors", bus.EndpointOptions{ClusterConcurrency: 2},
		bus.HandleTx(func(*bus.Context, pgx.Tx, inspect) error {
			close(inspects)
			<-let
			return nil
		}))
	if _, err := b.Send(t.Context(), inspect{}); err != nil {
		t.Fatal(err)
	}
	<-inspects
}

// The slots of a limit show which process holds them, since when, until when and for which message: slots of a leased
// endpoint, of an endpoint whose batches hold them, and of a program's own limit.
func TestSlotsSayWhoHoldsThem(t *testing.T) {
	t.Parallel()
	pool, schema := newSchema(t)
	buildWall(t, pool, schema)
	limiter, err := limit.New(pool, limit.Options{Schema: schema, Holder: "exporter"})
	if err != nil {
		t.Fatal(err)
	}
	slot, err := limiter.Acquire(t.Context(), "exports", 2)
	if err != nil {
		t.Fatal(err)
	}
	op, err := operate.New(pool, operate.Options{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	held, err := op.Limits().Holders(t.Context(), "")
	if err != nil || len(held) != 3 {
		t.Fatalf("%+v, %v", held, err)
	}
	batch, named, robot := held[0], held[1], held[2]
	host, err := os.Hostname()
	if process := fmt.Sprintf("%s (process %d)", host, os.Getpid()); err != nil || robot.Limit != "robots" ||
		robot.Process != process || robot.Does != "handles brick.lay" || len(robot.Messages) != 1 || robot.Lost ||
		robot.Left <= 0 || robot.Left > time.Minute || time.Since(robot.Since) > time.Minute {
		t.Errorf("the slot of the leased endpoint is %+v", robot)
	}
	if batch.Limit != "inspectors" || batch.Name != "" || !batch.Until.IsZero() || batch.Does != "runs a batch" ||
		!strings.Contains(batch.Process, "server process ") || batch.Since.IsZero() || batch.Draining {
		t.Errorf("the slot of the batch is %+v", batch)
	}
	if named.Limit != "named/exports" || !strings.HasPrefix(named.Process, "exporter/") || named.Left <= 0 {
		t.Errorf("the slot of the program is %+v", named)
	}
	s := serve(t, pool, schema, eddaui.Options{})
	page := s.get("/limits")
	for _, want := range []string{
		`3 in use"><li class="held"><span class="cell held" title="slot \d, held by ` +
			regexp.QuoteMeta(robot.Process) + ` since [0-9:]+: handles brick\.lay"></span> ` +
			regexp.QuoteMeta(robot.Process) + ` <a href="[^"]*messages/` + robot.Messages[0].String() +
			`">handles brick\.lay</a> <span class="soft">since <time[^>]*>[^<]+</time>, lease until <time`,
		`(<li class="free"><span class="cell free" title="free"></span> <span class="soft">free</span></li>){2}</ol>`,
		`</span> [^<]*server process \d+\)? runs a batch <span class="soft">since <time`,
		`</span> exporter/\S+ runs code of its program <span`,
	} {
		if !regexp.MustCompile(want).MatchString(page) {
			t.Errorf("the page of limits does not have %s:\n%s", want, page)
		}
	}
	var got struct {
		Limits []struct {
			Name    string
			Holders []struct{ Process, Does string }
		}
	}
	if err := json.Unmarshal([]byte(s.get("/limits.json")), &got); err != nil || len(got.Limits) != 3 ||
		len(got.Limits[2].Holders) != 1 || got.Limits[2].Holders[0].Process != robot.Process {
		t.Errorf("for programs there is %+v, %v", got, err)
	}
	if _, err := pool.Exec(t.Context(), "UPDATE "+schema+".session SET ended = now(), died = true"); err != nil {
		t.Fatal(err)
	}
	if err := op.Limits().Set(t.Context(), "named/exports", 1); err != nil {
		t.Fatal(err)
	}
	if held, err = op.Limits().Holders(t.Context(), "robots"); err != nil || len(held) != 1 || !held[0].Lost {
		t.Errorf("of a process that has died there is %+v, %v", held, err)
	}
	if err := slot.Release(); err != nil {
		t.Error(err)
	}
	if held, err = op.Limits().Holders(t.Context(), "named/exports"); err != nil || len(held) != 0 {
		t.Errorf("of what was released there is %+v, %v", held, err)
	}
}

// A message under a lease is shown with its process and the end of the lease: on the page of the instance that waits
// for it, and on its own.
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
