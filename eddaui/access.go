package eddaui

import (
	"context"
	"net/http"
)

// May is what an actor may do, as bits.
type May uint16

// The rights. Look shows everything except bodies and states.
const (
	Look     May = 1 << iota
	Bodies       // bodies of messages, states of instances and queries of sessions are shown
	Retry        // dead letters and runs are retried
	Edit         // dead letters are edited
	Discard      // dead letters and messages are discarded
	Pause        // endpoints, manifests and groups are paused and resumed
	Limit        // limits and numbers of workers are set, leases are resigned
	Schedule     // manifests are triggered and backfilled, runs are cancelled
	Send         // messages are sent to instances, timeouts are fired and moved
	Repair       // instances are repaired and ended
	Admin        // all that is left
)

// acting are the rights to change something.
const acting = Retry | Edit | Discard | Pause | Limit | Schedule | Send | Repair | Admin

// Actor is who asks.
type Actor struct {
	Name string // of a person, for the record
	From string // where the request came from, for the record
	May  May
}

type actorKey struct{}

// actorOf returns the actor of a request that a UI serves; the zero Actor of any other.
func actorOf(ctx context.Context) Actor {
	a, _ := ctx.Value(actorKey{}).(Actor)
	return a
}

// authorized lets an actor in who may look. Everybody else gets 403, whatever they ask for.
func (u *UI) authorized(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := Actor{From: r.RemoteAddr, May: Look}
		if u.o.Authorize != nil {
			var err error
			if a, err = u.o.Authorize(r); err != nil {
				u.log.WarnContext(r.Context(), "edda: ui: a request was refused", "path", r.URL.Path, "error", err)
				u.refuse(w, r, "You may not look here.")
				return
			}
		}
		if a.May&Look == 0 {
			u.refuse(w, r, "You may not look here.")
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), actorKey{}, a)))
	})
}

// needs lets a request through if its actor has one of the rights.
func (u *UI) needs(may May, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if actorOf(r.Context()).May&may == 0 {
			u.refuse(w, r, "You may not change this.")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// refuse answers 403.
func (u *UI) refuse(w http.ResponseWriter, r *http.Request, text string) {
	u.complain(w, r, http.StatusForbidden, text)
}

// policy allows what comes from here and nothing else: no script and no style in a page, whatever a text has in it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// guarded sets the headers that every answer has, refusals included.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}
