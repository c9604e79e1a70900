package contention

import (
	"errors"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
)

// Instance is one saga instance that the messages of a batch are for: who has it, how it was loaded, and how its save
// ended. It belongs to the goroutine of the batch. Other packages read the fields, and change them only by the
// methods, which follow in the order of their calls.
type Instance struct {
	Def     *saga.Definition
	Asked   Handle // its name in the first message
	Session *saga.Session
	Fault   error // why its messages fail, or wait for a newer program
	ID      saga.ID
	Version int64
	Row     persistence.Row
	Before  []byte // its state as it was loaded

	Lock    bool               // it is loaded with its lock
	Stepped bool               // a step has used it
	Ended   bool               // it has completed
	Change  history.ChangeKind // the change that its save makes, 0 if the history does not record it
	Write   int                // its index in the save, or -1
	Won     bool

	status status
}

type status uint8

const (
	unknown   status = iota
	absent           // no row, or a row of another saga
	busyHere         // a different worker of this process has it
	busyThere        // a different transaction has it
	ours
	faulty // its state cannot be read
	newer  // its state is from a newer program
)

// NewInstance returns an instance that was not loaded yet. d is its saga, as far as the message shows it.
func NewInstance(d *saga.Definition, asked Handle) *Instance {
	return &Instance{Def: d, Asked: asked, Write: -1}
}

// NewAbsent returns an instance that does not exist.
func NewAbsent(d *saga.Definition, asked Handle) *Instance {
	return &Instance{Def: d, Asked: asked, Write: -1, status: absent}
}

// MustLock makes the load of the instance lock it.
func (i *Instance) MustLock() { i.Lock = true }

// HeldHere notes that a different worker of this process has the instance. Its messages stay in the queue.
func (i *Instance) HeldHere() { i.status = busyHere }

// Freed notes that the other worker of this process has left the instance: it can be loaded.
func (i *Instance) Freed() { i.status = unknown }

// Found takes over the result of a load, and reports whether the instance is ours. d is the saga of the row, nil if the
// endpoint does not have it: then the instance is absent. Opened follows if the row was loaded and can be read.
func (i *Instance) Found(f persistence.Found, d *saga.Definition) (isOurs bool) {
	switch {
	case f.Status == persistence.Busy:
		i.status, i.ID = busyThere, f.Instance.ID
		return false
	case f.Status == persistence.Absent, d == nil:
		i.status = absent
		return false
	}
	i.Def, i.status = d, ours
	i.ID, i.Version, i.Row, i.Before = f.Instance.ID, f.Instance.Version, f.Row, f.Instance.State
	if f.Faulty != nil {
		i.status, i.Fault = faulty, saga.Permanent(f.Faulty)
	}
	return true
}

// Begin makes the instance the one that a message starts. It is stored only if a step succeeds.
func (i *Instance) Begin(id saga.ID, s *saga.Session) { i.ID, i.Session, i.status = id, s, ours }

// Opened takes over the result of saga.Definition.Open. With an error no message can be handled on the instance.
func (i *Instance) Opened(s *saga.Session, err error) {
	switch {
	case errors.Is(err, saga.ErrNewerState):
		i.status, i.Fault = newer, err
	case err != nil:
		i.status, i.Fault = faulty, err
	default:
		i.Session = s
	}
}

// Step notes that a step has used the instance, and whether it has completed the instance.
func (i *Instance) Step(completed bool) { i.Stepped, i.Ended = true, i.Ended || completed }

// Record notes the change that the history records.
func (i *Instance) Record(change history.ChangeKind) { i.Change = change }

// Written notes the place of the instance in the save.
func (i *Instance) Written(at int) { i.Write = at }

// Settle notes whether the save of the instance has won.
func (i *Instance) Settle(won bool) { i.Won = won }

// BusyHere reports whether a different worker of this process has the instance.
func (i *Instance) BusyHere() bool { return i.status == busyHere }

// BusyThere reports whether a different transaction has the instance.
func (i *Instance) BusyThere() bool { return i.status == busyThere }

// Left reports whether the messages of the instance stay in the queue: a different worker has it, or it was not
// looked up.
func (i *Instance) Left() bool {
	return i.status == unknown || i.status == busyHere || i.status == busyThere
}

// Absent reports whether the instance does not exist.
func (i *Instance) Absent() bool { return i.status == absent }

// Newer reports whether the state of the instance is from a newer program.
func (i *Instance) Newer() bool { return i.status == newer }

// Name returns the name of the instance in events and records.
func (i *Instance) Name() (sagaName, key string) {
	if i == nil {
		return "", ""
	}
	if i.Session != nil {
		if in, err := i.Session.Instance(); err == nil {
			return in.Saga, in.Key
		}
	}
	return i.Def.Name(), i.Asked.Key
}

// Firing returns the firing that started the instance, or nil if no manifest did.
func (i *Instance) Firing() *saga.Firing {
	if i == nil || i.Session == nil {
		return nil
	}
	in, err := i.Session.Instance()
	if err != nil || in.Originator.Run.IsZero() {
		return nil
	}
	return &saga.Firing{Run: in.Originator.Run, Attempt: in.Originator.RunAttempt}
}
