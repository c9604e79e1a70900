package act

import (
	"errors"
	"net/http"
	"slices"

	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5/pgconn"
)

// Refusal is the reason why an action did not run.
type Refusal struct {
	Status int
	Text   string
	Now    string // the current state, or "" if it is not to be shown
	Form   *Form  // the form with the submitted values, to send again; nil if that is of no use
}

func (r *Refusal) Error() string { return r.Text }

// refuse refuses the submitted form, and shows it again.
func (in Input) refuse(status int, text string) error {
	f := in.action.filled(in.values, in.action.fields)
	return &Refusal{Status: status, Text: text, Form: &f}
}

// gone and wrong are errors of Edda's own, whose texts are shown.
var (
	gone = []error{
		operate.ErrNotInstalled, operate.ErrNotFound, operate.ErrNoLimit, operate.ErrNoLetter, operate.ErrNoJob,
		operate.ErrNoInstance, operate.ErrNoTimeout, scheduler.ErrNoManifest,
		scheduler.ErrNoRun, scheduler.ErrNoGroup, scheduler.ErrNotHeld,
	}
	wrong = []error{
		operate.ErrTooMany, operate.ErrVersion, operate.ErrRemembered, operate.ErrState, operate.ErrInHand,
		operate.ErrNoRoute, operate.ErrAmbiguous, operate.ErrConflict, operate.ErrUndeliverable,
		deadletter.ErrNote, saga.ErrTooLarge, saga.ErrNewerState, scheduler.ErrEnded, scheduler.ErrTaken,
	}
)

// refused turns an error that describes a fault of the input into a Refusal.
func refused(err error) error {
	is := func(known error) bool { return errors.Is(err, known) }
	var server *pgconn.PgError
	switch {
	case slices.ContainsFunc(gone, is):
		return &Refusal{Status: http.StatusNotFound, Text: "Nothing was changed: " + view.EscapeLines(err.Error())}
	case slices.ContainsFunc(wrong, is):
		return &Refusal{Status: http.StatusConflict, Text: "Nothing was changed: " + view.EscapeLines(err.Error())}
	case errors.As(err, &server) && refuses(server.Code):
		return &Refusal{Status: http.StatusBadRequest, Text: "Nothing was changed: " + view.EscapeLines(server.Message)}
	}
	return err
}

// refuses reports whether an SQLSTATE means that a function refused its arguments.
func refuses(code string) bool { return len(code) == 5 && (code[:2] == "22" || code[:2] == "P0") }

// Forbidden refuses an actor that lacks the right.
func Forbidden(rights ...Right) *Refusal {
	text := "To do this you need the right "
	for n, r := range rights {
		if n > 0 {
			text += " or "
		}
		text += r.String()
	}
	return &Refusal{Status: http.StatusForbidden, Text: text + "."}
}
