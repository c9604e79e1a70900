package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/spf13/cobra"
)

func (t queues) commands() *cobra.Command {
	c := &cobra.Command{
		Use: "queue", Short: "Show the messages that wait for endpoints, and cancel them",
		Example: `  edda queue list
  edda queue peek orders --limit 5 --body
  edda queue show 0198c0de-0000-7000-8000-000000000001
  edda queue cancel orders 0198c0de-0000-7000-8000-000000000001 --reason 'ordered twice'`,
		RunE: group,
	}
	c.AddCommand(t.list(), t.peek(), t.show(), t.cancel())
	return c
}

// queues has the commands that look at messages which wait, and cancel them.
type queues struct{ *tool }

func queueOf(i operate.QueueInfo) object {
	return object{"endpoint", i.Endpoint, "ready", i.Ready, "delayed", i.Delayed, "claimed", i.Claimed, "parked",
		i.Parked, "capped", i.Capped, "oldest_due", jsonTime(i.OldestDue), "lag_seconds", i.Lag.Seconds(), "relay",
		i.Relay, "kinds", append([]string{}, i.Kinds...)}
}

func (t queues) list() *cobra.Command {
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
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (result, error) {
				infos, err := op.Queues().List(ctx)
				return listing{name: "queues", none: t.inSchema("No endpoint is installed in schema %q.")}.of(
					"ENDPOINT|READY|DELAYED|CLAIMED|PARKED|LAG|BY|KINDS", rows(infos,
						func(i operate.QueueInfo) (object, []string) {
							return queueOf(i), []string{i.Endpoint, count(i.Ready), count(i.Delayed), count(i.Claimed),
								count(i.Parked), span(i.Lag), consumer(i.Relay), strings.Join(i.Kinds, " ")}
						})), err
			})
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

func (t queues) cancel() *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "cancel ENDPOINT ID", Short: "Cancel one message, waiting or running",
		Long: `Cancel one message by its id. A message that waits, also one that is due later, is taken out of the
queue and recorded as discarded. When the handler of a leased endpoint runs with the message, the
handler's context ends: the message is discarded when the handler returns an error, and handled when
it returns none. The queue is read from one end to the other, because it has no index of ids.`,
		Example: `  edda queue cancel orders 0198c0de-0000-7000-8000-000000000001 --reason 'ordered twice'`,
		Args:    arguments(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := saga.ParseID(args[1])
			if err != nil {
				return usage(c, fmt.Errorf("message id %s: want a UUID", escape(args[1])))
			}
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (result, error) {
				did, err := op.Messages().Cancel(ctx, args[0], id, reason)
				if err != nil {
					return result{}, err
				}
				running, done := did == operate.CancelledRunning, "Message %s was taken out of the queue and "+
					"recorded as discarded."
				if running {
					done = "The handler of message %s was asked to stop."
				}
				return lineOf(object{"id", id, "running", running}, done, id), nil
			})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why, for the record")
	return c
}

func (t queues) peek() *cobra.Command {
	var (
		o      operate.PeekOptions
		after  string
		bodies bool
	)
	c := &cobra.Command{
		Use: "peek ENDPOINT", Short: "Show the messages at the head of a queue",
		Long: `Show messages of a queue in the order in which they are due, those in a worker's hands included, and
leave them as they are. ATTEMPT is the number of the next attempt, LAST ERROR the error for which the message was last
put back. Bodies are shown with --body only, because they may be confidential.`,
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
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (result, error) {
				messages, err := op.Messages().Peek(ctx, args[0], o)
				if err != nil {
					return result{}, err
				}
				next := ""
				if n := len(messages); n > 0 && n >= min(cmp.Or(o.Limit, 50), 200) {
					last := messages[n-1].Info
					next = last.Due.Format(time.RFC3339Nano) + "/" + last.ID.String()
				}
				return peeked(messages, next, bodies), nil
			})
		},
	}
	c.Flags().IntVar(&o.Limit, "limit", 20, "messages, at most 200")
	c.Flags().StringVar(&after, "after", "", "continue after this message, given as DUE/ID: the end of the page before")
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
	list := listing{name: "messages", none: "No message waits here.", next: &next}.of(
		"DUE|ID|KIND|ATTEMPT|CONFLICTS|FIRST FAILED|LAST ERROR|BYTES|HEADERS", rows(messages,
			func(m operate.QueuedMessage) (object, []string) { return messageOf(m, bodies), messageRow(m) }))
	if !bodies || len(messages) == 0 {
		return list
	}
	return result{value: list.value, page: func(p *page) {
		for _, m := range messages {
			p.line("%s", strings.Join(slices.DeleteFunc(messageRow(m), func(s string) bool { return s == "" }), "  "))
			p.block(shownBody(m))
		}
		p.more(next)
	}}
}

func messageRow(m operate.QueuedMessage) []string {
	return []string{moment(m.Info.Due), m.Info.ID.String(), m.Info.Kind, strconv.Itoa(m.Info.Attempt),
		strconv.Itoa(m.Conflicts), moment(m.FirstFailed), shortened(m.LastError, 80), strconv.Itoa(m.Size),
		shortened(headersOf(m, true), 80)}
}

func messageOf(m operate.QueuedMessage, bodies bool) object {
	i, headers := m.Info, map[string]string{}
	for name, value := range i.Headers() {
		headers[name] = value
	}
	o := object{"id", i.ID, "kind", i.Kind, "due", i.Due, "ready", m.Ready, "sent", jsonTime(i.Sent), "expires",
		jsonTime(expires(i)), "attempt", i.Attempt, "conflicts", m.Conflicts, "first_failed", jsonTime(m.FirstFailed),
		"last_error", m.LastError, "intent", i.Intent.String(), "from", i.From, "conversation", i.ConversationID,
		"instance", jsonID(i.Instance), "headers", headers}
	if m.Faulty != nil {
		o = append(o, "header_error", m.Faulty.Error())
	}
	// truncated: the body is longer than what is shown of it
	o = append(o, "size", m.Size, "truncated", bodies && len(m.Body) < m.Size)
	if bodies {
		o = append(o, bodyOf(m.Body)...)
	}
	return o
}

// expires is when a message is discarded if no handler has begun with it, or zero: never.
func expires(i saga.Info) time.Time {
	if i.Expire == 0 {
		return time.Time{}
	}
	return i.Sent.Add(i.Expire)
}

// headersOf is what a person sees of the headers.
func headersOf(m operate.QueuedMessage, from bool) string {
	var all []string
	if m.Faulty != nil {
		all = append(all, "unreadable: "+m.Faulty.Error())
	}
	if from && m.Info.From != "" {
		all = append(all, "from="+m.Info.From)
	}
	for name, value := range m.Info.Headers() {
		all = append(all, name+"="+value)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func shownBody(m operate.QueuedMessage) string {
	if len(m.Body) < m.Size {
		return string(m.Body) + fmt.Sprintf("… (%d of %d bytes)", len(m.Body), m.Size)
	}
	return string(m.Body)
}

func (t queues) show() *cobra.Command {
	bodies, bytes := false, 0
	c := &cobra.Command{
		Use: "show ID", Short: "Find one message in any queue, and show all about it",
		Long: `Find one message in any queue by its id, and show all that the queue knows of it: when it is due,
which attempt comes next, the error for which it was last put back, which session works on it. An
event is shown once for each queue that has a copy. Queues have no index of ids, so all of them are
read. The body is shown with --body only. Exit code 3: no queue has the message; it was handled, or
is a dead letter (edda dead list --message ID).`,
		Example: `  edda queue show 0198c0de-0000-7000-8000-000000000001
  edda queue show 0198c0de-0000-7000-8000-000000000001 --body --json`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := saga.ParseID(args[0])
			if err != nil {
				return usage(c, fmt.Errorf("message id %s: want a UUID", escape(args[0])))
			}
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (result, error) {
				found, err := op.Messages().Show(ctx, id, bytes)
				return shownMessages(found, bodies), err
			})
		},
	}
	c.Flags().BoolVar(&bodies, "body", false, "show the body")
	c.Flags().IntVar(&bytes, "body-bytes", 4096, "how much of the body, at most 65536")
	return c
}

func foundOf(m operate.FoundMessage, bodies bool) object {
	// lane: the message is parked behind another one of this key
	return append(append(object{"endpoint", m.Endpoint}, messageOf(m.QueuedMessage, bodies)...), "lane", m.Lane,
		"claims", m.Claims, "holder", jsonID(m.Holder), "was_due", jsonTime(m.WasDue), "cancelled", m.Cancelled,
		"crashes", m.Crashes, "crashes_alone", m.CrashesAlone)
}

func shownMessages(found []operate.FoundMessage, bodies bool) result {
	all := []object{}
	for _, m := range found {
		all = append(all, foundOf(m, bodies))
	}
	return result{value: object{"messages", all}, page: func(p *page) {
		for _, m := range found {
			showMessage(p, m)
			if bodies {
				p.block(shownBody(m.QueuedMessage))
			}
		}
	}}
}

func showMessage(p *page, m operate.FoundMessage) {
	i := m.Info
	p.fields("endpoint", m.Endpoint, "message", i.ID.String(), "kind", i.Kind, "intent", i.Intent.String(), "from",
		i.From, "conversation", i.ConversationID.String(), "instance", idText(i.Instance), "sent", moment(i.Sent),
		"due", moment(i.Due), "expires", moment(expires(i)), "ready", strconv.FormatBool(m.Ready), "next attempt",
		strconv.Itoa(i.Attempt), "conflicts",
		strconv.Itoa(m.Conflicts), "first failed", moment(m.FirstFailed), "last error", m.LastError,
		"parked behind key", m.Lane, "claims", number(m.Claims), "held by session", idText(m.Holder),
		"due before the claim", moment(m.WasDue), "cancelled", m.Cancelled, "crashes", number(m.Crashes),
		"crashes alone", number(m.CrashesAlone), "headers", headersOf(m.QueuedMessage, false), "body",
		fmt.Sprintf("%d bytes", m.Size))
}

// number leaves out what is 0.
func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
