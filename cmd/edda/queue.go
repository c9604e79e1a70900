package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/spf13/cobra"
)

func (t *tool) queueCommands() *cobra.Command {
	c := &cobra.Command{
		Use: "queue", Short: "Show the messages that wait for endpoints, and cancel them",
		Example: `  edda queue list
  edda queue peek orders --limit 5 --body
  edda queue show 0198c0de-0000-7000-8000-000000000001
  edda queue cancel orders 0198c0de-0000-7000-8000-000000000001 --reason 'ordered twice'`,
		RunE: group,
	}
	c.AddCommand(t.queueList(), t.queuePeek(), t.queueShow(), t.queueCancel())
	return c
}

type queueJSON struct {
	Endpoint  string     `json:"endpoint"`
	Ready     int64      `json:"ready"`
	Delayed   int64      `json:"delayed"`
	Claimed   int64      `json:"claimed"`
	Parked    int64      `json:"parked"`
	Capped    bool       `json:"capped"`
	OldestDue *time.Time `json:"oldest_due"`
	Lag       float64    `json:"lag_seconds"`
	Relay     bool       `json:"relay"`
	Kinds     []string   `json:"kinds"`
}

func (t *tool) queueList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "Show every queue: how many messages wait, and for how long",
		Long: fmt.Sprintf(`Show every queue: how many messages are due (READY), how many are due later (DELAYED: delays,
timeouts, retries), how many a leased endpoint has in hand (CLAIMED), how many wait behind others of their key (PARKED,
in ordered endpoints), how long the first of the ready messages has been due (LAG), whether an endpoint consumes the
queue or a relay carries it to a broker (BY), and the kinds that are sent or published to it.

Messages are counted one by one up to %d; a larger number is an estimate, and marked with "~". Nothing is locked.`,
			operate.CountLimit),
		Example: `  edda queue list
  edda queue list --json | jq '.queues[] | select(.lag_seconds > 60)'`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, op, err := t.open(c.Context())
			if err != nil {
				return err
			}
			infos, err := op.Queues().List(ctx)
			if err != nil {
				return causeOf(ctx, err)
			}
			all := []queueJSON{}
			rows := [][]string{{"ENDPOINT", "READY", "DELAYED", "CLAIMED", "PARKED", "LAG", "BY", "KINDS"}}
			for _, i := range infos {
				all = append(all, queueJSON{i.Endpoint, i.Ready, i.Delayed, i.Claimed, i.Parked, i.Capped,
					jsonTime(i.OldestDue), i.Lag.Seconds(), i.Relay, append([]string{}, i.Kinds...)})
				rows = append(rows, []string{i.Endpoint, count(i.Ready), count(i.Delayed), count(i.Claimed),
					count(i.Parked), span(i.Lag), consumer(i.Relay), strings.Join(i.Kinds, " ")})
			}
			return t.print(result{value: map[string]any{"queues": all}, page: func(p *page) {
				if len(infos) == 0 {
					p.line("No endpoint is installed in schema %q.", t.schemaName())
					return
				}
				p.table(rows)
			}})
		},
	}
}

func consumer(relay bool) string {
	if relay {
		return "relay"
	}
	return "endpoint"
}

func count(n int64) string {
	if n >= operate.CountLimit {
		return "~" + strconv.FormatInt(n, 10)
	}
	return strconv.FormatInt(n, 10)
}

type messageJSON struct {
	ID           saga.ID           `json:"id"`
	Kind         string            `json:"kind"`
	Due          time.Time         `json:"due"`
	Ready        bool              `json:"ready"`
	Sent         *time.Time        `json:"sent"`
	Attempt      int               `json:"attempt"`
	Conflicts    int               `json:"conflicts"`
	FirstFailed  *time.Time        `json:"first_failed"`
	LastError    string            `json:"last_error"`
	Intent       string            `json:"intent"`
	From         string            `json:"from"`
	Conversation saga.ID           `json:"conversation"`
	Instance     *saga.ID          `json:"instance"`
	Headers      map[string]string `json:"headers"`
	HeaderError  string            `json:"header_error,omitempty"`
	Size         int               `json:"size"`
	Truncated    bool              `json:"truncated"` // the body is longer than what is shown of it
	body
}

func (t *tool) queueCancel() *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "cancel ENDPOINT ID", Short: "Cancel one message, waiting or running",
		Long: `Cancel one message by its id. A message that waits, also one that is due later, is taken out of the queue
and recorded as discarded. When the handler of a leased endpoint runs with the message, the handler's context ends: the
message is discarded when the handler returns an error, and handled when it returns none. The queue is read from one end
to the other, because it has no index of ids.`,
		Example: `  edda queue cancel orders 0198c0de-0000-7000-8000-000000000001 --reason 'ordered twice'`,
		Args:    arguments(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := saga.ParseID(args[1])
			if err != nil {
				return usage(c, fmt.Errorf("message id %s: want a UUID", escape(args[1])))
			}
			ctx, op, err := t.open(c.Context())
			if err != nil {
				return err
			}
			did, err := op.Messages().Cancel(ctx, args[0], id, reason)
			if err != nil {
				return causeOf(ctx, err)
			}
			running := did == operate.CancelledRunning
			return t.print(result{value: map[string]any{"id": id, "running": running}, page: func(p *page) {
				if running {
					p.line("The handler of message %s is told to stop.", id)
				} else {
					p.line("Message %s was taken out of the queue and recorded as discarded.", id)
				}
			}})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why, for the record")
	return c
}

func (t *tool) queuePeek() *cobra.Command {
	var (
		o      operate.PeekOptions
		after  string
		bodies bool
	)
	c := &cobra.Command{
		Use: "peek ENDPOINT", Short: "Show the messages at the head of a queue",
		Long: `Show messages of a queue in the order in which they are due, those in a worker's hands included, and
leave them as they are. ATTEMPT is the number of the next attempt, LAST ERROR the error for which the message was last
put back. Bodies are shown with --body only: they may hold what is not meant for everybody.`,
		Example: `  edda queue peek orders
  edda queue peek orders --limit 200 --after 2026-11-21T10:00:00.000001Z/0198c0de-0000-7000-8000-000000000001
  edda queue peek orders --body --json`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			var err error
			if o.AfterDue, o.AfterID, err = place(after); err != nil {
				return usage(c, err)
			}
			if o.Limit < 0 || o.BodyBytes < 0 {
				return usage(c, fmt.Errorf("--limit and --body-bytes must not be negative"))
			}
			ctx, op, err := t.open(c.Context())
			if err != nil {
				return err
			}
			messages, err := op.Messages().Peek(ctx, args[0], o)
			if err != nil {
				return causeOf(ctx, err)
			}
			next := ""
			if n := len(messages); n > 0 && n >= min(cmp.Or(o.Limit, 50), 200) {
				last := messages[n-1].Info
				next = last.Due.Format(time.RFC3339Nano) + "/" + last.ID.String()
			}
			return t.print(peeked(messages, next, bodies))
		},
	}
	c.Flags().IntVar(&o.Limit, "limit", 20, "messages, at most 200")
	c.Flags().StringVar(&after, "after", "", "go on behind this message, given as DUE/ID: the end of the page before")
	c.Flags().BoolVar(&bodies, "body", false, "show bodies")
	c.Flags().IntVar(&o.BodyBytes, "body-bytes", 4096, "how much of each body, at most 65536")
	return c
}

// place reads DUE/ID.
func place(text string) (due time.Time, id saga.ID, err error) {
	if text == "" {
		return due, id, nil
	}
	first, second, _ := strings.Cut(text, "/")
	if due, err = time.Parse(time.RFC3339Nano, first); err == nil {
		id, err = saga.ParseID(second)
	}
	if err != nil {
		err = fmt.Errorf("--after %s: want a time and an id, as in "+
			"2026-11-21T10:00:00Z/0198c0de-0000-7000-8000-000000000001", escape(text))
	}
	return due, id, err
}

func peeked(messages []operate.QueuedMessage, next string, bodies bool) result {
	all := []messageJSON{}
	for _, m := range messages {
		all = append(all, messageOf(m, bodies))
	}
	value := map[string]any{"messages": all, "next": next}
	return result{value: value, page: func(p *page) {
		if len(messages) == 0 {
			p.line("No message waits here.")
			return
		}
		rows := [][]string{{"DUE", "ID", "KIND", "ATTEMPT", "CONFLICTS", "FIRST FAILED", "LAST ERROR", "BYTES",
			"HEADERS"}}
		for n, m := range messages {
			row := []string{moment(m.Info.Due), m.Info.ID.String(), m.Info.Kind, strconv.Itoa(m.Info.Attempt),
				strconv.Itoa(m.Conflicts), moment(m.FirstFailed), shortened(m.LastError, 80),
				strconv.Itoa(m.Size), headersOf(all[n])}
			if bodies {
				p.line("%s", strings.Join(slices.DeleteFunc(row, func(s string) bool { return s == "" }), "  "))
				p.block(shownBody(m))
				continue
			}
			rows = append(rows, row)
		}
		if !bodies {
			p.table(rows)
		}
		if next != "" {
			p.line("There may be more: --after %s", next)
		}
	}}
}

func messageOf(m operate.QueuedMessage, bodies bool) messageJSON {
	i := m.Info
	j := messageJSON{
		ID: i.ID, Kind: i.Kind, Due: i.Due, Ready: m.Ready, Sent: jsonTime(i.Sent), Attempt: i.Attempt,
		Conflicts:   m.Conflicts,
		FirstFailed: jsonTime(m.FirstFailed), LastError: m.LastError, Intent: i.Intent.String(), From: i.From,
		Conversation: i.ConversationID,
		Headers:      map[string]string{}, Size: m.Size,
	}
	if !i.Instance.IsZero() {
		j.Instance = &i.Instance
	}
	for name, value := range i.Headers() {
		j.Headers[name] = value
	}
	if m.Faulty != nil {
		j.HeaderError = m.Faulty.Error()
	}
	if bodies {
		j.body, j.Truncated = bodyOf(m.Body), len(m.Body) < m.Size
	}
	return j
}

// headersOf is what a person sees of the headers.
func headersOf(j messageJSON) string {
	var all []string
	if j.HeaderError != "" {
		all = append(all, "unreadable: "+j.HeaderError)
	}
	if j.From != "" {
		all = append(all, "from="+j.From)
	}
	for name, value := range j.Headers {
		all = append(all, name+"="+value)
	}
	slices.Sort(all)
	return shortened(strings.Join(all, " "), 80)
}

func shownBody(m operate.QueuedMessage) string {
	if len(m.Body) < m.Size {
		return string(m.Body) + fmt.Sprintf("… (%d of %d bytes)", len(m.Body), m.Size)
	}
	return string(m.Body)
}
