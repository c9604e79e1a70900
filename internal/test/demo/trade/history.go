package trade

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
)

const toldOrder = "7" // whose card is refused

// tell prints the history of one order, which has ended: its instance is deleted, but its history remains.
func tell(ctx context.Context, o *operate.Operator, out io.Writer) error {
	lives, err := o.History().Lives(ctx, "order", toldOrder, 1)
	if err != nil || len(lives) == 0 {
		return err
	}
	versions, _, err := o.History().Timeline(ctx, lives[0], saga.ID{}, 100)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "\nThe history of order %s:\n", toldOrder)
	for _, v := range versions {
		for _, e := range v.Entries {
			_, _ = fmt.Fprintf(out, "  %s  %-12s%s\n", e.At.Local().Format("15:04:05.000"), v.Change, line(v, e))
		}
	}
	_, err = fmt.Fprintf(out, "In a database of yours (DATABASE_URL), this is: edda history show order %s\n", toldOrder)
	return err
}

// line describes a message, its changes to the state, and the messages that its handler sent.
func line(v history.Version, e history.Entry) string {
	text := e.Info.Kind
	if e.Error != "" {
		text += ": " + e.Error
	}
	if change := history.Diff(v.Before, v.State); change != "" {
		text += "  " + change
	}
	var sent []string
	for _, m := range e.Sent {
		sent = append(sent, m.Kind)
	}
	if len(sent) > 0 {
		text += "  → " + strings.Join(sent, ", ")
	}
	return text
}
