package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// member is one worker process, which is started again when it was killed.
type member struct {
	role    string
	number  int
	starts  int
	name    string // of this start; its connections bear it
	process *exec.Cmd
	ended   chan error // gets what Wait returned
}

// crew is all of them.
type crew struct {
	place   *place
	task    assignment
	errs    io.Writer
	members []*member
	kills   map[string]int // by role
}

func (c *crew) hire(role string, number int) error {
	m := &member{role: role, number: number}
	c.members = append(c.members, m)
	return c.start(m)
}

func (c *crew) start(m *member) error {
	m.starts++
	m.name = fmt.Sprintf("%s_%s_%d_%d", c.task.Schema, m.role, m.number, m.starts)
	m.name = m.name[max(0, len(m.name)-60):]
	task := c.task
	task.Role, task.Name = m.role, m.name
	text, err := json.Marshal(task)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	m.process = exec.Command(self)
	m.process.Env = append(os.Environ(), assignmentVariable+"="+string(text))
	m.process.Stderr = c.errs
	if err := m.process.Start(); err != nil {
		return fmt.Errorf("start a %s: %w", m.role, err)
	}
	process, ended := m.process, make(chan error, 1)
	m.ended = ended
	go func() { ended <- process.Wait() }()
	return nil
}

var errDone = errors.New("it has nothing left to do")

// kill ends a member while it holds an open transaction. It is stopped first, so that what is seen of it stays true.
func (c *crew) kill(ctx context.Context, m *member) error {
	for {
		select {
		case err := <-m.ended:
			m.ended <- err
			return errDone
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
		if err := m.process.Process.Signal(syscall.SIGSTOP); err != nil {
			continue // it has ended
		}
		open := 0
		err := c.place.pool.QueryRow(ctx, c.place.sql.Get("open_transactions"), m.name).Scan(&open)
		if err == nil && open > 0 {
			break
		}
		if contErr := m.process.Process.Signal(syscall.SIGCONT); err != nil {
			return errors.Join(err, contErr)
		}
		time.Sleep(time.Duration(1+m.starts%7) * time.Millisecond) // let it come somewhere else
	}
	if err := m.process.Process.Kill(); err != nil {
		return err
	}
	<-m.ended
	c.kills[m.role]++
	return c.start(m)
}

// finish ends the members that are left, in order. One that ends with an error is a fault.
func (c *crew) finish() error {
	var faults []error
	for _, m := range c.members {
		_ = m.process.Process.Signal(syscall.SIGTERM)
	}
	for _, m := range c.members {
		select {
		case err := <-m.ended:
			if err != nil && !terminated(err) {
				faults = append(faults, fmt.Errorf("%s: %w", m.name, err))
			}
		case <-time.After(30 * time.Second):
			faults = append(faults, fmt.Errorf("%s did not end", m.name), m.process.Process.Kill())
		}
	}
	return errors.Join(faults...)
}

// terminated tells a process that had not come far enough yet to end in order.
func terminated(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGTERM
}
