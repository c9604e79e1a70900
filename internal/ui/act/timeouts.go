package act

import (
	"context"
	"fmt"
	"time"

	"github.com/edda-go/edda/operate"
)

// Timeout returns the forms of a pending timeout of an instance: name is its name, or its id.
func Timeout(saga, key, name string) []Form {
	v := values{"saga", saga, "key", key, "name", name}
	return []Form{fireTimeout.form(v), moveTimeout.form(v), cancelTimeout.form(v)}
}

func ofTimeout(in Input) operate.Target {
	return operate.Target{Saga: in.text("saga"), Key: in.text("key"), Reason: in.Reason()}
}

func (in Input) aboutTimeout() string {
	return shell("edda saga timeout", in.text("saga"), in.text("key"), in.text("name"))
}

// lookAtTimeout shows the irreversible change of a timeout.
func lookAtTimeout(done, final string) func(context.Context, *Desk, Input) (*Preview, error) {
	return func(_ context.Context, _ *Desk, in Input) (*Preview, error) {
		return one(final, fmt.Sprintf("Timeout %s of %s %s %s.", in.text("name"), in.text("saga"), in.text("key"),
			done)), nil
	}
}

var fireTimeout = &Action{
	Name: "timeout.fire", Pattern: "/instance/timeout/fire", Rights: []Right{Send}, Button: "Fire now",
	Says: "Makes the timeout due now.", fields: []field{of("saga"), which("key"), of("name"), why},
	page: pageOfInstance, done: "The timeout is due now.",
	command: func(in Input) string { return in.because(in.aboutTimeout() + " --fire") },
	check:   lookAtTimeout("will be due now", "The effects of its handler cannot be undone."),
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		_, err := d.Op.Instances().FireTimeout(ctx, ofTimeout(in), in.text("name"))
		return Done{}, err
	},
}

var moveTimeout = &Action{
	Name: "timeout.move", Pattern: "/instance/timeout/move", Rights: []Right{Send}, Button: "Change due time",
	Says: "Makes the timeout due at a different time.",
	fields: []field{of("saga"), which("key"), of("name"), {name: "at", label: "New due time", kind: coming, must: true,
		example: "2h", hint: "a time such as 2026-12-01T10:00:00Z, or a duration from now such as 90m"}, why},
	page: pageOfInstance, done: "The due time was changed.",
	command: func(in Input) string { return in.because(in.flags(in.aboutTimeout(), "at", "at")) },
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		now, err := d.now(ctx)
		if err != nil {
			return Done{}, err
		}
		at := in.moment("at", now, time.Duration(1))
		_, err = d.Op.Instances().MoveTimeout(ctx, ofTimeout(in), in.text("name"), at)
		return Done{}, err
	},
}

var cancelTimeout = &Action{
	Name: "timeout.cancel", Pattern: "/instance/timeout/cancel", Rights: []Right{Send}, Button: "Cancel timeout",
	Says: "The instance will not get this timeout.", fields: []field{of("saga"), which("key"), of("name"), why},
	page: pageOfInstance, done: "The timeout was cancelled.",
	command: func(in Input) string { return in.because(in.aboutTimeout() + " --cancel") },
	check: lookAtTimeout("will be cancelled",
		"This cannot be undone. An instance that waits for nothing else then waits forever."),
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		_, err := d.Op.Instances().CancelTimeout(ctx, ofTimeout(in), in.text("name"))
		return Done{}, err
	},
}

var ofTimeouts = []*Action{fireTimeout, moveTimeout, cancelTimeout}
