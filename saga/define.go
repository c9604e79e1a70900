package saga

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"time"
)

// Store says how concurrent steps of one instance are kept apart.
type Store uint8

const (
	Pessimistic Store = iota // the row is locked while a step runs; the zero value is the default
	Optimistic               // the version is compared when the step is written
)

// Missing says what happens to a message that finds no instance and may not start one.
type Missing uint8

const (
	MissingDiscard    Missing = iota // recorded: kind, key, reason
	MissingRetry                     // delayed retries of the policy, then dead letter
	MissingDeadLetter                // at once
)

// Options of a definition. Every zero is a default.
type Options struct {
	Store        Store
	StateVersion int // 0 is 1; raise it when S changes, and add an Upcast
	// Pessimistic: how long a worker waits for another process that has all the instances of its batch; less than 50 ms
	// is 50 ms
	LockWait time.Duration
	Missing  Missing // for handlers without an IfMissing; zero is MissingDiscard
}

// Definition is what a saga is: its handlers by kind. It never changes after Define, so it is safe for
// concurrent use. Its faults are collected in Err, which runtimes report before the first message.
type Definition struct {
	name  string
	opts  Options
	keyed map[string]*handler // StartedBy and Handles: found by key
	reply map[string]*handler // OnReply: found by the instance id that an answer carries
	timer map[string]*handler // OnTimeout
	order []*handler

	stateType reflect.Type
	plain     bool       // a state is what decoding its bytes would give, see isPlain
	newState  func() any // *S
	upcasts   map[int]upcast
	faults    []error
}

// upcast turns state stored as an older version into the encoding of today's.
type upcast func(old []byte) ([]byte, error)

// Part is typed by the state, so that two states in one Define do not compile. The type parameter ends
// here: Definition and everything below it are untyped.
type Part[S any] interface{ part(*S, *Definition) }

type part[S any] func(*Definition)

func (p part[S]) part(_ *S, d *Definition) { p(d) }

// Define makes a saga from its parts. It never fails: what is wrong is in Err, all of it at once.
func Define[S any](name string, o Options, parts ...Part[S]) *Definition {
	d := &Definition{
		name: name, opts: o, stateType: reflect.TypeFor[S](), newState: func() any { return new(S) },
		keyed: map[string]*handler{}, reply: map[string]*handler{}, timer: map[string]*handler{},
		upcasts: map[int]upcast{},
	}
	if o.StateVersion == 0 {
		d.opts.StateVersion = 1
	}
	for i, p := range parts {
		if p == nil {
			d.fault("part %d is nil", i+1)
			continue
		}
		p.part(nil, d)
	}
	d.plain = isPlain(d.stateType)
	d.check()
	return d
}

// fault remembers what is wrong; the saga's name is put before it.
func (d *Definition) fault(format string, args ...any) {
	d.faults = append(d.faults, fmt.Errorf("saga %q: "+format, append([]any{d.name}, args...)...))
}

// Name is the saga's stable name.
func (d *Definition) Name() string { return d.name }

// Store says how the saga's instances are kept apart.
func (d *Definition) Store() Store { return d.opts.Store }

// Options returns the options with their defaults filled in.
func (d *Definition) Options() Options { return d.opts }

// StateType is the type of the state, S.
func (d *Definition) StateType() reflect.Type { return d.stateType }

// Err returns every fault of the definition, each naming the saga and, where there is one, the kind. nil: none.
func (d *Definition) Err() error { return errors.Join(d.faults...) }

// Role says how a handler's messages find their instance.
type Role uint8

const (
	RoleStart   Role = iota // StartedBy: by key; starts an instance when there is none
	RoleHandle              // Handles: by key
	RoleReply               // OnReply: by the instance id that an answer carries
	RoleTimeout             // OnTimeout: by the instance id, from Context.Timeout only
)

var roleNames = [...]string{RoleStart: "StartedBy", RoleHandle: "Handles", RoleReply: "OnReply",
	RoleTimeout: "OnTimeout"}

// String is the name of the constructor: "StartedBy", "Handles", "OnReply" or "OnTimeout".
func (r Role) String() string {
	if int(r) < len(roleNames) {
		return roleNames[r]
	}
	return fmt.Sprintf("role(%d)", uint8(r))
}

// KindInfo is one handler as a runtime sees it. A kind that is both an answer and found by key has two.
type KindInfo struct {
	Kind    string
	Role    Role
	Type    reflect.Type
	Missing Missing // what becomes of one without an instance; of no account with Asks, and in timeouts
	Asks    bool    // it has an IfMissingDo
}

// Kinds lists the handlers in the order they were declared.
func (d *Definition) Kinds() []KindInfo {
	out := make([]KindInfo, 0, len(d.order))
	for _, h := range d.order {
		out = append(out, KindInfo{Kind: h.kind, Role: h.role, Type: h.msgType, Missing: h.missing,
			Asks: h.ifNone != nil})
	}
	return out
}

// timers yields the kinds that OnTimeout handles, sorted, for error texts.
func (d *Definition) timers() iter.Seq[string] {
	return slices.Values(slices.Sorted(maps.Keys(d.timer)))
}
