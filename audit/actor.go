package audit

import (
	"context"

	"github.com/edda-go/edda/internal/base/pg"
)

// Actor is who acts.
type Actor struct {
	Name string // a person or a program, such as an e-mail address; at most 200 bytes are kept
	From string // an address, a host or a program; "" is the application_name of the connection
}

const (
	mostName   = 200     // bytes of a name, an origin, a verb or a target
	mostReason = 8 << 10 // bytes
)

type (
	actorKey  struct{}
	reasonKey struct{}
)

// As returns a context in which a acts.
func As(ctx context.Context, a Actor) context.Context { return context.WithValue(ctx, actorKey{}, a) }

// Because returns a context with the reason of what is done in it. A method with a reason of its own prefers that.
func Because(ctx context.Context, reason string) context.Context {
	return context.WithValue(ctx, reasonKey{}, reason)
}

// ActorOf returns who acts in ctx, the zero Actor if nobody has said.
func ActorOf(ctx context.Context) Actor {
	a, _ := ctx.Value(actorKey{}).(Actor)
	return Actor{Name: pg.Storable(a.Name, mostName), From: pg.Storable(a.From, mostName)}
}

func reasonOf(ctx context.Context) string {
	reason, _ := ctx.Value(reasonKey{}).(string)
	return reason
}
