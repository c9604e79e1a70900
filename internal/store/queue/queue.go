package queue

import (
	_ "embed"
	"maps"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/edda-go/edda/internal/base/pg"
)

//go:embed take.sql
var takeSQL string

//go:embed insert.sql
var insertSQL string

//go:embed claim.sql
var claimSQL string

//go:embed lanes.sql
var lanesSQL string

//go:embed look.sql
var lookSQL string

// text has the statements that name the table of one queue.
var text = strings.Join([]string{takeSQL, insertSQL, claimSQL, lanesSQL, lookSQL}, "\n")

// Queue is one endpoint's table, and the statements that name it. Safe for concurrent use.
type Queue struct {
	ID       int
	Endpoint string
	Table    string
	Relay    bool // a relay consumes it

	schema    pg.Schema
	templates pg.Statements                     // with :schema and :queue in them
	rendered  atomic.Pointer[map[string]string] // statements that were used; a map is never changed
}

func newQueue(schema pg.Schema, templates pg.Statements, id int, endpoint string, relay bool) *Queue {
	return &Queue{
		ID: id, Endpoint: endpoint, Table: schema.Render(":schema.queue_" + strconv.Itoa(id)), Relay: relay,
		schema: schema, templates: templates,
	}
}

// SQL returns a statement for this queue. It is rendered at its first use: a process has every queue of the schema in
// its cache, and works with a few of them.
func (q *Queue) SQL(name string) string {
	known := q.rendered.Load()
	if known != nil {
		if sql, ok := (*known)[name]; ok {
			return sql
		}
	}
	grown := map[string]string{name: q.schema.RenderWith(q.templates.Get(name), ":queue", q.Table)}
	if known != nil {
		maps.Copy(grown, *known)
	}
	q.rendered.CompareAndSwap(known, &grown) // if another goroutine was faster, the next use renders it again
	return grown[name]
}

// To returns a statement that moves messages from this queue to target.
func (q *Queue) To(target *Queue, name string) string {
	return q.schema.RenderWith(q.templates.Get(name), ":queue", q.Table, ":target", target.Table)
}
