package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/spf13/cobra"
)

type foundJSON struct {
	Endpoint string `json:"endpoint"`
	messageJSON
	Lane         string     `json:"lane"` // parked behind another message of this key
	Claims       int        `json:"claims"`
	Holder       *saga.ID   `json:"holder"`
	WasDue       *time.Time `json:"was_due"`
	Cancelled    string     `json:"cancelled"`
	Crashes      int        `json:"crashes"`
	CrashesAlone int        `json:"crashes_alone"`
}

func (t *tool) queueShow() *cobra.Command {
	bodies, bytes := false, 0
	c := &cobra.Command{
		Use: "show ID", Short: "Find one message in any queue, and show all about it",
		Long: `Find one message in any queue by its id, and show all that the queue knows of it: when it is due, which
attempt comes next, the error for which it was last put back, who has it in hand. An event is shown once for each queue
that has a copy. Queues have no index of ids, so all of them are read. The body is shown with --body only. Exit code 3:
no queue has the message; it was handled, or is a dead letter (edda dead list --message ID).`,
		Example: `  edda queue show 0198c0de-0000-7000-8000-000000000001
  edda queue show 0198c0de-0000-7000-8000-000000000001 --body --json`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := saga.ParseID(args[0])
			if err != nil {
				return usage(c, fmt.Errorf("message id %s: want a UUID", escape(args[0])))
			}
			ctx, op, err := t.open(c.Context())
			if err != nil {
				return err
			}
			found, err := op.Messages().Show(ctx, id, bytes)
			if err != nil {
				return causeOf(ctx, err)
			}
			return t.print(shownMessages(found, bodies))
		},
	}
	c.Flags().BoolVar(&bodies, "body", false, "show the body")
	c.Flags().IntVar(&bytes, "body-bytes", 4096, "how much of the body, at most 65536")
	return c
}

func shownMessages(found []operate.FoundMessage, bodies bool) result {
	all := []foundJSON{}
	for _, m := range found {
		j := foundJSON{
			Endpoint: m.Endpoint, messageJSON: messageOf(m.QueuedMessage, bodies), Lane: m.Lane, Claims: m.Claims,
			WasDue: jsonTime(m.WasDue), Cancelled: m.Cancelled, Crashes: m.Crashes, CrashesAlone: m.CrashesAlone,
		}
		if !m.Holder.IsZero() {
			j.Holder = &m.Holder
		}
		all = append(all, j)
	}
	return result{value: map[string]any{"messages": all}, page: func(p *page) {
		for n, m := range found {
			showMessage(p, m, all[n])
			if bodies {
				p.block(shownBody(m.QueuedMessage))
			}
		}
	}}
}

func showMessage(p *page, m operate.FoundMessage, j foundJSON) {
	i := m.Info
	p.fields(
		"endpoint",
		m.Endpoint,
		"message",
		i.ID.String(),
		"kind",
		i.Kind,
		"intent",
		i.Intent.String(),
		"from",
		i.From,
		"conversation",
		i.ConversationID.String(),
		"instance",
		idOrNone(i.Instance),
		"sent",
		moment(i.Sent),
		"due",
		moment(i.Due),
		"ready",
		strconv.FormatBool(m.Ready),
		"next attempt",
		strconv.Itoa(i.Attempt),
		"conflicts",
		strconv.Itoa(m.Conflicts),
		"first failed",
		moment(m.FirstFailed),
		"last error",
		m.LastError,
		"parked behind key",
		m.Lane,
		"claims",
		number(m.Claims),
		"held by session",
		idOrNone(m.Holder),
		"due before the claim",
		moment(m.WasDue),
		"cancelled",
		m.Cancelled,
		"crashes",
		number(m.Crashes),
		"crashes alone",
		number(m.CrashesAlone),
		"headers",
		headerList(j.messageJSON),
		"body",
		fmt.Sprintf("%d bytes", m.Size),
	)
}

// number leaves out what is 0.
func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func headerList(j messageJSON) string {
	var all []string
	if j.HeaderError != "" {
		all = append(all, "unreadable: "+j.HeaderError)
	}
	for name, value := range j.Headers {
		all = append(all, name+"="+value)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}
