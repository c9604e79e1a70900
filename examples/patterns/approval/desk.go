package approval

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"

	"github.com/edda-go/edda/saga"
)

// page web

// Bus is a *bus.Bus, or in tests a *memory.Bus.
type Bus interface {
	saga.InstanceReader
	Send(ctx context.Context, m saga.Message, o ...saga.SendOption) (saga.Sent, error)
}

// Desk is where people decide.
type Desk struct {
	Bus  Bus
	User func(*http.Request) string // the name of the signed-in person
}

var expenses = saga.StatesOf[Expense](Expenses)

// Decide handles POST /expenses/{id}/decision.
func (d Desk) Decide(w http.ResponseWriter, r *http.Request) {
	ctx, id, user := r.Context(), r.PathValue("id"), d.User(r)
	expense, open, err := expenses.Read(ctx, d.Bus, id)
	switch {
	case err != nil:
		slog.ErrorContext(ctx, "read an expense", "expense", id, "error", err)
		http.Error(w, "try again later", http.StatusServiceUnavailable)
		return
	case !open:
		http.Error(w, "there is nothing to decide any more", http.StatusConflict)
		return
	case !slices.Contains(expense.Asked, user):
		http.Error(w, "you were not asked", http.StatusForbidden)
		return
	}
	if _, err := d.Bus.Send(ctx, Decide{Expense: id, Approve: r.FormValue("approve") == "yes", By: user}); err != nil {
		slog.ErrorContext(ctx, "send a decision", "expense", id, "error", err)
		http.Error(w, "try again later", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusAccepted)
	_, _ = fmt.Fprintln(w, "your decision is on its way")
}

// end
