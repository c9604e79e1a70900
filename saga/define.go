package saga

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Store is how concurrent steps of one instance are kept apart.
type Store uint8

const (
	Pessimistic Store = iota // the row is locked while a step runs; the zero value is the default
	Optimistic               // the version is compared when the step is written
)

// Missing is what happens to a message that finds no instance and may not start one.
type Missing uint8

const (
	MissingDiscard    Missing = iota // discard the message, and record its kind, key and reason
	MissingRetry                     // a failed attempt: the endpoint's policy decides
	MissingDeadLetter                // a dead letter at once
)

// Options of a definition. Every zero is a default.
type Options struct {
	Store        Store
	StateVersion int // 0 is 1; at most 1,000,000. Raise it when S changes, and add an Upcast
	// Of a Pessimistic saga: how long a worker waits if another process holds all instances of its batch. Less than 50
	// ms means 50 ms.
	LockWait time.Duration
	// Of an Optimistic saga: after how many lost saves an instance is loaded with its lock, for five seconds. 0 is 2;
	// -1 is never. Then nobody in the process takes the instance for a random time, at first of at most 5 ms, which
	// doubles up to 50 ms. See docs/guide/hot-sagas.md.
	LockAfter int
	Missing   Missing // for handlers without an IfMissing; zero is MissingDiscard

	// Remember is for how long the row of a completed instance stays, so that a message which comes late is recognised.
	// A message that would start an instance of the key starts none until then. What becomes of it, IfMissing says, as
	// for every message without an instance. 0 is not at all; at most 10 years.
	Remember time.Duration
}

// Definition is a saga: its name, its options and its handlers by kind. It does not change after Define and is safe for
// concurrent use. Err has its faults; a runtime reports them before it takes a message.
type Definition struct {
	name  string
	opts  Options
	keyed map[string]*handler // StartedBy and Handles: found by key
	reply map[string]*handler // OnReply: found by the instance id that an answer carries
	timer map[string]*handler // OnTimeout
	order []*handler

	stateType reflect.Type
	plain     bool       // a state equals the result of decoding its bytes, see isPlain
	keepsText bool       // decoding a state calls code that might keep the bytes
	newState  func() any // *S
	upcasts   map[int]upcast
	starts    bool // it has a StartedBy, faulty ones included
	faults    []error
}

// upcast converts the bytes of an older version into bytes of the current version.
type upcast func(old []byte) ([]byte, error)

// Part is a handler or an upcast of a saga with state S. A Define with parts of two states does not compile. The type
// parameter ends here: Definition has none.
type Part[S any] interface{ part(*S, *Definition) }

type part[S any] func(*Definition)

func (p part[S]) part(_ *S, d *Definition) { p(d) }

// Define makes a saga from its parts. It never fails; Err returns all faults of the definition.
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
	d.register(forgetter(), false)
	d.plain, d.keepsText = isPlain(d.stateType), keepsText(d.stateType, map[reflect.Type]bool{})
	d.check()
	return d
}

// fault records a fault, with the saga's name before it.
func (d *Definition) fault(format string, args ...any) {
	d.faults = append(d.faults, fmt.Errorf("saga %q: "+format, append([]any{d.name}, args...)...))
}

// Name is the saga's stable name.
func (d *Definition) Name() string { return d.name }

// Options returns the options with their defaults filled in.
func (d *Definition) Options() Options { return d.opts }

// StateType is the type of the state, S.
func (d *Definition) StateType() reflect.Type { return d.stateType }

// Err returns every fault of the definition, or nil. Each names the saga and, if it has one, the kind.
func (d *Definition) Err() error { return errors.Join(d.faults...) }

// Role is how the messages of a handler find their instance.
type Role uint8

const (
	RoleStart   Role = iota // StartedBy: by key; starts an instance if there is none
	RoleHandle              // Handles: by key
	RoleReply               // OnReply: by the instance id of an answer
	RoleTimeout             // OnTimeout: by the instance id of a timeout
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

// KindInfo describes one handler. A kind with OnReply and Handles has two.
type KindInfo struct {
	Kind    string
	Role    Role
	Type    reflect.Type
	Missing Missing // for a message without an instance; ignored if Asks, and for timeouts
	Asks    bool    // it has an IfMissingDo
}

// Kinds lists the handlers in the order they were declared, and behind them that of the timeout which forgets a
// completed instance.
func (d *Definition) Kinds() []KindInfo {
	out := make([]KindInfo, 0, len(d.order))
	for _, h := range d.order {
		out = append(out, KindInfo{Kind: h.kind, Role: h.role, Type: h.msgType, Missing: h.missing,
			Asks: h.ifNone != nil})
	}
	return out
}

// timerKinds returns the kinds that OnTimeout handles, sorted, for errors.
func (d *Definition) timerKinds() string {
	kinds := slices.Sorted(maps.Keys(d.timer))
	kinds = slices.DeleteFunc(kinds, func(kind string) bool { return kind == forgetKind })
	return cmp.Or(strings.Join(kinds, ", "), "none")
}
