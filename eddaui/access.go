package eddaui

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/edda-go/edda/internal/ui/act"
)

// Permission is a set of rights, as bits.
type Permission uint16

// Rights of an actor. View allows everything to be read except bodies and states.
const (
	View     Permission = 1 << iota
	Bodies              // bodies of messages, states of instances and queries of sessions are shown
	Retry               // dead letters and runs are retried, jobs undone, and relayed messages sent again
	Edit                // dead letters are edited
	Discard             // dead letters are discarded, and messages in queues cancelled
	Pause               // endpoints, manifests and groups are paused and resumed
	Limit               // limits and numbers of workers are set, leases are resigned
	Schedule            // manifests are triggered and backfilled, runs are cancelled
	Send                // messages are sent, timeouts of instances fired, moved and cancelled
	Repair              // instances are repaired and ended
	Admin               // all other changes: which history is kept, and for how long; manifests are removed
)

// anything lists the rights to change something.
var anything = []act.Right{
	act.Retry, act.Edit, act.Discard, act.Pause, act.Limit, act.Schedule, act.Send, act.Repair, act.Admin,
}

// Actor is the person or program that sends a request.
type Actor struct {
	Name        string // of a person, for the audit; "" is From
	From        string // where the request came from, for the audit; "" is its RemoteAddr
	Permissions Permission
}

type askerKey struct{}

// asker is the actor of a request, with the request as Authorize received it.
type asker struct {
	Actor
	request *http.Request
}

// actorOf returns the actor of a request that a UI serves; the zero Actor of any other.
func actorOf(ctx context.Context) Actor {
	a, _ := ctx.Value(askerKey{}).(asker)
	return a.Actor
}

// stillMay calls Authorize again, and reports whether the actor of a request has the same rights as at its begin. A
// page that was begun with other rights shows too much or too little, and has to be read again.
func (u *UI) stillMay(r *http.Request) bool {
	began, _ := r.Context().Value(askerKey{}).(asker)
	now, err := u.ask(began.request)
	if err != nil {
		u.log.WarnContext(r.Context(), "edda: ui: an open page was closed", "path", r.URL.Path, "error", err)
	}
	return err == nil && now.Permissions == began.Permissions
}

// ask returns the actor of a request, with the rights that these pages allow.
func (u *UI) ask(r *http.Request) (a Actor, err error) {
	a = Actor{Permissions: View}
	if u.o.Authorize != nil {
		if a, err = u.o.Authorize(r); err != nil {
			return a, err
		}
	}
	if a.Permissions&View == 0 {
		return a, errors.New("it has no right to look")
	}
	a.From = cmp.Or(a.From, r.RemoteAddr)
	if u.o.ReadOnly {
		a.Permissions &= View | Bodies
	}
	return a, nil
}

// authorized admits an actor with the right View. All others get 403, for every address.
func (u *UI) authorized(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, err := u.ask(r)
		if err != nil {
			u.log.WarnContext(r.Context(), "edda: ui: a request was refused", "path", r.URL.Path, "error", err)
			u.refuse(w, r, "You have no right to see these pages.")
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), askerKey{}, asker{a, r})))
	})
}

// needs admits a request if its actor has any of the rights.
func (u *UI) needs(rights []act.Right, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case actorOf(r.Context()).Permissions&anyOf(rights) != 0:
			next.ServeHTTP(w, r)
		case u.o.ReadOnly:
			u.refuse(w, r, "These pages are read-only: no action is possible here.")
		default:
			u.refuse(w, r, act.Forbidden(rights...).Text)
		}
	})
}

// refuse answers with 403.
func (u *UI) refuse(w http.ResponseWriter, r *http.Request, text string) {
	u.complain(w, r, http.StatusForbidden, text)
}

// policy allows only resources of these pages: no script and no style inside a page, whatever its texts contain.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// guarded sets the headers that every answer has, including refusals.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin") // with no-referrer a browser hides the origin of a form, from us, too
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}
