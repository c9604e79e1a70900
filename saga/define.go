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

// Store selects how a saga keeps concurrent steps of one instance apart.
type Store uint8

const (
	Pessimistic Store = iota // the row is locked while a step runs; the zero value is the default
	Optimistic               // the version is compared when the step is written
)

// Missing is the treatment of a message that finds no instance and may not start one.
type Missing uint8

const (
	MissingDiscard    Missing = iota // discard the message, and record its kind, key and reason
	MissingRetry                     // a failed attempt: the endpoint's policy decides
	MissingDeadLetter                // a dead letter at once
)

// Options configure a definition. The zero value of each field is its default.
type Options struct {
	Store        Store
	StateVersion int // 0 is 1; at most 1,000,000. Raise it when S changes, and add an Upcast
	// LockWait is how long a worker of a Pessimistic saga waits if another process has locked all instances of its
	// batch. Less than 50 ms means 50 ms. Negative is an error.
	LockWait time.Duration
	// LockAfter is, for an Optimistic saga, the number of lost saves after which workers load the instance with its
	// lock, for five seconds. 0 means 2; -1 means never: then the process waits after a lost save for a random time,
	// at first at most 5 ms, doubled up to 50 ms. See docs/guide/hot-sagas.md.
	LockAfter int
	Missing   Missing // for handlers without IfMissing; the zero value is MissingDiscard

	// Remember is how long the row of a completed instance stays, so that late messages are recognized. In that time
	// no message starts an instance with its key: a message that would do so is treated as IfMissing configures, like
	// every message without an instance. 0 means that the row is deleted at once; the maximum is 10 years.
	Remember time.Duration
}

// Definition is a saga: its name, its options and its handlers by kind. It does not change after Define and is safe
// for concurrent use. Err returns its faults; a runtime reports them before it takes a message.
type Definition struct {
	name  string
	opts  Options
	keyed map[string]*handler // StartedBy and Handles: found by key
	reply map[string]*handler // OnReply: found by the instance id that an answer carries
	timer map[string]*handler // OnTimeout
	order []*handler

	stateType reflect.Type
	plain     bool       // decoding the bytes of a state gives an equal state, see isPlain
	keepsText bool       // decoding a state calls code that might keep the bytes
	newState  func() any // *S
	upcasts   map[int]upcast
	starts    bool // a StartedBy was given, even a faulty one
	faults    []error
}

// upcast converts the bytes of an older version into bytes of the current version.
type upcast func(old []byte) ([]byte, error)

// Part is a handler or an upcast of a saga with state S. A Define with parts of two states does not compile.
// Definition itself has no type parameter.
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

// fault records a fault, prefixed with the saga's name.
func (d *Definition) fault(format string, args ...any) {
	d.faults = append(d.faults, fmt.Errorf("saga %q: "+format, append([]any{d.name}, args...)...))
}

// Name returns the saga's stable name.
func (d *Definition) Name() string { return d.name }

// Options returns the options with their defaults filled in.
func (d *Definition) Options() Options { return d.opts }

// StateType returns the type of the state, S.
func (d *Definition) StateType() reflect.Type { return d.stateType }

// Err returns every fault of the definition, or nil. Each names the saga and, if it has one, the kind.
func (d *Definition) Err() error { return errors.Join(d.faults...) }

// Role determines how the messages of a handler find their instance.
type Role uint8

const (
	RoleStart   Role = iota // StartedBy: by key; starts an instance if the key has no instance
	RoleHandle              // Handles: by key
	RoleReply               // OnReply: by the instance id of an answer
	RoleTimeout             // OnTimeout: by the instance id of a timeout
)

var roleNames = [...]string{RoleStart: "StartedBy", RoleHandle: "Handles", RoleReply: "OnReply",
	RoleTimeout: "OnTimeout"}

// String returns the name of the constructor: "StartedBy", "Handles", "OnReply" or "OnTimeout".
func (r Role) String() string {
	if int(r) < len(roleNames) {
		return roleNames[r]
	}
	return fmt.Sprintf("role(%d)", uint8(r))
}

// KindInfo describes one handler. A kind with OnReply and Handles has two handlers.
type KindInfo struct {
	Kind    string
	Role    Role
	Type    reflect.Type
	Missing Missing // for a message without an instance; ignored if Asks, and for timeouts
	Asks    bool    // the handler has an IfMissingDo
}

// Kinds lists the handlers in the order they were declared, followed by the handler of the timeout that forgets a
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
