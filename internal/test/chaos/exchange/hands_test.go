package exchange

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/procs"
)

// member is one worker, which is started again when it was killed. The name of its process is borne by its connections.
type member struct {
	*procs.Process
	role   string
	number int
	starts int
}

// hands are all of them. One ends by itself when it has nothing left to do, so nobody keeps their places filled.
type hands struct {
	place   *place
	task    assignment
	errs    io.Writer
	members []*member
	kills   map[string]int // by role
}

func (c *hands) hire(role string, number int) error {
	m := &member{role: role, number: number}
	if err := c.start(m); err != nil {
		return err
	}
	c.members = append(c.members, m)
	return nil
}

func (c *hands) start(m *member) error {
	m.starts++
	task := c.task
	task.Role, task.Name = m.role, fmt.Sprintf("%s_%s_%d_%d", c.task.Schema, m.role, m.number, m.starts)
	task.Name = task.Name[max(0, len(task.Name)-60):]
	p, err := procs.Start(procs.Job{Name: task.Name, Variable: assignmentVariable, Task: task, Stderr: c.errs})
	if err == nil {
		m.Process = p
	}
	return err
}

var errDone = errors.New("it has nothing left to do")

// kill ends a member while it holds an open transaction. It is frozen first, so that what is seen of it stays true.
func (c *hands) kill(ctx context.Context, m *member) error {
	for open := 0; open == 0; {
		// let it come somewhere else
		if err := run.Sleep(ctx, time.Duration(1+m.starts%7)*time.Millisecond); err != nil {
			return err
		}
		m.Freeze()
		err := c.place.pool.QueryRow(ctx, c.place.sql.Get("open_transactions"), m.Name).Scan(&open)
		if open == 0 {
			m.Thaw()
		}
		select {
		case <-m.Ended():
			return errDone
		default:
		}
		if err != nil {
			return err
		}
	}
	m.Kill()
	c.kills[m.role]++
	return c.start(m)
}

const endWithin = 30 * time.Second

// finish ends the members that are left, in order. One that ends with an error is a fault.
func (c *hands) finish() error {
	var faults []error
	for _, m := range c.members {
		faults = append(faults, m.Stop(endWithin))
	}
	return errors.Join(faults...)
}
