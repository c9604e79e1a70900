package eddaui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"time"

	"github.com/edda-go/edda/internal/ui/act"
	"github.com/edda-go/edda/internal/ui/page"
	"github.com/edda-go/edda/operate"
)

const mostForm = 4 << 20 // bytes: a body of 1 MiB grows by its encoding

// rights maps the rights of actions to those of an actor.
var rights = map[act.Right]Permission{
	act.Retry: Retry, act.Edit: Edit, act.Discard: Discard, act.Pause: Pause, act.Limit: Limit,
	act.Schedule: Schedule, act.Send: Send, act.Repair: Repair, act.Admin: Admin,
}

// anyOf returns the bits of rights. An actor needs any of them.
func anyOf(all []act.Right) (may Permission) {
	for _, r := range all {
		may |= rights[r]
	}
	return may
}

// actions returns all buttons of the pages.
func (u *UI) actions() (all []action) {
	for _, a := range act.All() {
		all = append(all, action{a.Pattern, a.Rights, u.act(a)})
	}
	return all
}

// actionPage shows a form with faults, or a confirmation.
type actionPage struct {
	page.Head
	Status  int
	Text    string // the faults, or ""
	Now     string // the current state, or "" if it is not to be shown
	Preview *act.Preview
	Form    *act.Form // to send again
	Back    string    // relative to the first page
}

// JSON returns the fields for a program.
func (p *actionPage) JSON() any {
	if p.Preview == nil {
		return map[string]any{"error": p.Text}
	}
	return map[string]any{"agree": p.Preview.Says, "count": p.Preview.Count, "final": p.Preview.Final}
}

// act runs an action: it reads the form, shows the confirmation if one is needed, runs the action, and redirects to
// the page of the result.
func (u *UI) act(a *act.Action) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		in, ok := u.readForm(w, r, a)
		if !ok {
			return
		}
		actor := actorOf(r.Context())
		ctx, cancel := context.WithTimeout(r.Context(), u.desk.LimitOf(a))
		defer cancel()
		ctx = operate.WithActor(ctx, operate.Actor{Name: cmp.Or(actor.Name, actor.From), From: actor.From})
		ctx = operate.WithReason(ctx, in.Reason())
		preview, err := a.Look(ctx, u.desk, in)
		if err == nil && preview != nil {
			form := preview.Form()
			u.showAction(w, r, a, &actionPage{Status: http.StatusOK, Preview: preview, Form: &form, Back: a.Page(in)})
			return
		}
		if name := a.Named(in); err == nil && name != "" {
			u.writeFile(ctx, w, r, a, in)
			return
		}
		address := ""
		if err == nil {
			address, err = a.Do(ctx, u.desk, in)
		}
		if err != nil {
			u.failAction(w, r, a, in, err)
			return
		}
		w.Header().Set("Location", rootOf(r)+address) // relative, like all links: the prefix is unknown
		w.WriteHeader(http.StatusSeeOther)
	}
}

// file is an answer that is a file. It sends its header with its first line, so that an error before that is a page.
type file struct {
	http.ResponseWriter
	name  string
	begun bool
}

func (f *file) Write(text []byte) (int, error) {
	if !f.begun {
		f.begun = true
		f.Header().Set("Content-Type", "application/octet-stream")
		f.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": f.name}))
	}
	return f.ResponseWriter.Write(text)
}

// writeFile answers with the file of an action. If the file cannot be written to its end, it breaks the connection,
// so that the client notices that the file is incomplete.
func (u *UI) writeFile(ctx context.Context, w http.ResponseWriter, r *http.Request, a *act.Action, in act.Input) {
	f := &file{ResponseWriter: w, name: a.Named(in)}
	err := a.Write(ctx, u.desk, in, f)
	switch {
	case err == nil && !f.begun:
		_, _ = f.Write(nil)
	case err != nil && !f.begun:
		u.failAction(w, r, a, in, err)
	case err != nil:
		u.log.WarnContext(ctx, "edda: ui: a file was not written to its end", "file", f.name, "error", err)
		panic(http.ErrAbortHandler)
	}
}

// readForm reads the submitted form. If ok is false, it has answered the request.
func (u *UI) readForm(w http.ResponseWriter, r *http.Request, a *act.Action) (in act.Input, ok bool) {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/x-www-form-urlencoded" {
		u.complain(w, r, http.StatusUnsupportedMediaType, "Send the form as application/x-www-form-urlencoded.")
		return in, false
	}
	r.Body = http.MaxBytesReader(w, r.Body, mostForm)
	if err := r.ParseForm(); err != nil {
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			u.complain(w, r, http.StatusRequestEntityTooLarge, fmt.Sprintf(
				"The form is larger than %d bytes, which is the limit. The command edda has no limit.", tooLarge.Limit))
			return in, false
		}
		u.complain(w, r, http.StatusBadRequest, "The form cannot be read.")
		return in, false
	}
	in, err := a.Read(r.PathValue, r.PostForm)
	may := actorOf(r.Context()).Permissions
	in.May, in.Bodies = func(right act.Right) bool { return may&rights[right] != 0 }, may&Bodies != 0
	if err != nil {
		u.failAction(w, r, a, in, err)
	}
	return in, err == nil
}

// failAction answers with the reason why an action did not run.
func (u *UI) failAction(w http.ResponseWriter, r *http.Request, a *act.Action, in act.Input, err error) {
	var refusal *act.Refusal
	switch {
	case errors.As(err, &refusal):
		u.showAction(w, r, a, &actionPage{
			Status: refusal.Status, Text: refusal.Text, Now: refusal.Now, Form: refusal.Form, Back: a.Page(in),
		})
	case errors.Is(err, context.DeadlineExceeded) && r.Context().Err() == nil:
		u.complain(w, r, http.StatusServiceUnavailable, fmt.Sprintf("The action took longer than %v and was "+
			"stopped. An action in steps, such as an undo, has done some of its steps: send the form again to "+
			"continue. Any other action has changed nothing. The command edda waits longer.", u.desk.LimitOf(a)))
	default:
		u.fail(w, r, err)
	}
}

func (u *UI) showAction(w http.ResponseWriter, r *http.Request, a *act.Action, p *actionPage) {
	p.Head = page.Head{Title: a.Button, Now: time.Now()}
	if wantsJSON(r) {
		u.writeJSON(w, r, p.Status, p.JSON())
		return
	}
	f := u.frameOf(r, p)
	f.Live, f.JSON = "", ""
	u.show(w, r, p.Status, "action", f)
}
