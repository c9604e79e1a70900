package main

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/edda-go/edda/recoverability/deadletter"
	"github.com/edda-go/edda/saga"
	"github.com/spf13/cobra"
)

func (t *tool) deadCommands() *cobra.Command {
	c := &cobra.Command{
		Use: "dead", Short: "Show, retry, edit and discard dead letters",
		Long: `Dead letters are messages that were given up, kept with their bytes until somebody decides. Each has a
number of its own, and ends exactly once, however many people try at the same time. What a manifest emitted is not among
them: its run is dead in the place of its message, see edda run list --state dead.`,
		Example: `  edda dead group
  edda dead list --endpoint orders
  edda dead retry 17 18
  edda dead retry --group 373371abe806 --rate 10 --yes
  edda dead discard 19 --reason "test data of the load test"`,
		RunE: group,
	}
	c.AddCommand(t.deadList(), t.deadGroup(), t.deadShow(), t.deadRetry(), t.deadEdit(), t.deadDiscard(), t.deadJobs())
	return c
}

type letterJSON struct {
	Number      int64             `json:"number"`
	Died        time.Time         `json:"died"`
	Endpoint    string            `json:"endpoint"`
	Message     saga.ID           `json:"message"`
	Kind        string            `json:"kind"`
	Attempts    int               `json:"attempts"`
	Conflicts   int               `json:"conflicts"`
	Reason      string            `json:"reason"`
	Error       string            `json:"error"`
	Group       string            `json:"group"`
	Sent        *time.Time        `json:"sent"`
	FirstFailed *time.Time        `json:"first_failed"`
	Headers     map[string]string `json:"headers"`
	HeaderError string            `json:"header_error,omitempty"`
	Size        *int              `json:"size,omitempty"` // show only
	body
}

func letterOf(l deadletter.Letter) letterJSON {
	j := letterJSON{
		Number: l.Number, Died: l.Died, Endpoint: l.Endpoint, Message: l.MessageID, Kind: l.Kind, Attempts: l.Attempts,
		Conflicts: l.Conflicts, Reason: l.Reason, Error: l.Error, Group: l.Group, Sent: jsonTime(l.Sent),
		FirstFailed: jsonTime(l.FirstFailed),
		Headers:     map[string]string{},
	}
	headers, err := l.Headers()
	if err != nil {
		j.HeaderError = err.Error()
	}
	for _, h := range headers {
		j.Headers[h.Name] = h.Value
	}
	return j
}

func (t *tool) deadList() *cobra.Command {
	flags := &letterFlags{}
	c := &cobra.Command{
		Use: "list", Short: "Show dead letters in the order of their numbers",
		Example: `  edda dead list
  edda dead list --endpoint orders --kind order.place --after 17
  edda dead list --group 373371abe806 --since 2h
  edda dead list --message 0198c0de-0000-7000-8000-000000000001`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if err := flags.check(c); err != nil {
				return err
			}
			ctx, op, err := t.open(c.Context())
			if err != nil {
				return err
			}
			f, err := flags.read(ctx, t)
			if err != nil {
				return err
			}
			letters, err := op.DeadLetters().List(ctx, t.pool, f)
			if err != nil {
				return causeOf(ctx, err)
			}
			next := int64(0)
			if n := len(letters); n > 0 && n >= min(cmp.Or(max(f.Limit, 0), deadletter.DefaultLimit),
				deadletter.MaxLimit) {
				next = letters[n-1].Number
			}
			return t.print(letterList(letters, next))
		},
	}
	flags.add(c)
	c.Flags().Int64Var(&flags.filter.After, "after", 0, "go on behind this number")
	c.Flags().IntVar(&flags.filter.Limit, "limit", deadletter.DefaultLimit, "dead letters, at most 200")
	return c
}

func letterList(letters []deadletter.Letter, next int64) result {
	list := []letterJSON{}
	rows := [][]string{{"NUMBER", "DIED", "ENDPOINT", "KIND", "ATTEMPTS", "REASON", "ERROR"}}
	for _, l := range letters {
		list = append(list, letterOf(l))
		rows = append(rows, []string{strconv.FormatInt(l.Number, 10), moment(l.Died), l.Endpoint, l.Kind,
			strconv.Itoa(l.Attempts), shortened(l.Reason, 24), shortened(l.Error, 60)})
	}
	value := map[string]any{"dead_letters": list, "next": next}
	return result{value: value, page: func(p *page) {
		if len(letters) == 0 {
			p.line("No such dead letter.")
			return
		}
		p.table(rows)
		if next > 0 {
			p.line("There may be more: --after %d", next)
		}
	}}
}

func (t *tool) deadShow() *cobra.Command {
	withBody := false
	c := &cobra.Command{
		Use: "show NUMBER", Short: "Show one dead letter: its error, its headers, and its body with --body",
		Long: `Show one dead letter: its error, its headers, and its body with --body. Exit code 3: there is none with
this number, or it was retried or discarded.`,
		Example: `  edda dead show 17
  edda dead show 17 --body --json | jq -r .body`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			numbers, err := numbersOf(c, args)
			if err != nil {
				return err
			}
			ctx, op, err := t.open(c.Context())
			if err != nil {
				return err
			}
			l, err := op.DeadLetters().Show(ctx, t.pool, numbers[0])
			if err != nil {
				return causeOf(ctx, err)
			}
			value := letterOf(l)
			size := len(l.Body)
			if value.Size = &size; withBody {
				value.body = bodyOf(l.Body)
			}
			return t.print(result{value: value, page: func(p *page) { showLetter(p, l, withBody) }})
		},
	}
	c.Flags().BoolVar(&withBody, "body", false, "show the body")
	return c
}

func showLetter(p *page, l deadletter.Letter, withBody bool) {
	p.fields("number", strconv.FormatInt(l.Number, 10), "endpoint", l.Endpoint, "kind", l.Kind, "message",
		l.MessageID.String(),
		"sent", moment(l.Sent), "first failed", moment(l.FirstFailed), "died", moment(l.Died),
		"attempts", strconv.Itoa(l.Attempts), "conflicts", strconv.Itoa(l.Conflicts), "reason", l.Reason, "group",
		l.Group, "body", fmt.Sprintf("%d bytes", len(l.Body)))
	p.line("error:")
	p.block(l.Error)
	headers, err := l.Headers()
	switch {
	case err != nil:
		p.line("header, which is none:")
		p.block(string(l.Header))
	case len(headers) > 0:
		p.line("headers:")
		for _, h := range headers {
			p.line("    %s: %s", h.Name, h.Value)
		}
	}
	if withBody {
		p.line("body:")
		p.block(pretty(l.Body))
	}
}

// numbersOf reads numbers of dead letters, each once, in their order.
func numbersOf(c *cobra.Command, args []string) (numbers []int64, err error) {
	seen := map[int64]bool{}
	for _, arg := range args {
		n, err := strconv.ParseInt(arg, 10, 64)
		if err != nil || n < 1 {
			return nil, usage(c, fmt.Errorf("%s is no number of a dead letter: \"edda dead list\" shows them",
				escape(arg)))
		}
		if !seen[n] {
			seen[n] = true
			numbers = append(numbers, n)
		}
	}
	return numbers, nil
}

func (t *tool) deadRetry() *cobra.Command {
	m := &many{action: deadletter.ActionRetry}
	c := &cobra.Command{
		Use: "retry [NUMBER...]", Short: "Put dead letters back into their queues, with all attempts before them",
		Long: `Put dead letters back into the queues they came from, with their ids, headers and bytes, due now and with
no attempts counted. Workers are woken when that is committed.

With numbers each letter is a transaction of its own: when one fails the others are retried all the same, and the exit
code tells. With a filter, or --all, it is a job: the letters up to the newest one of now, at --rate letters a second. A
job that is interrupted, or killed, goes on with --resume, and retries no letter twice.`,
		Example: `  edda dead retry 17 18 19
  edda dead retry --group 373371abe806 --rate 10 --yes
  edda dead retry --endpoint orders --since 2h --yes
  edda dead retry --resume 7`,
		RunE: func(c *cobra.Command, args []string) error {
			job, err := m.isJob(c, args)
			if err != nil {
				return err
			}
			if job {
				return t.endMany(c, m, "")
			}
			return t.endLetters(c, args, "retried",
				func(l ending) error { return l.store.Retry(l.ctx, t.pool, l.bus, l.number) })
		},
	}
	m.add(c)
	return c
}

func (t *tool) deadDiscard() *cobra.Command {
	reason := ""
	m := &many{action: deadletter.ActionDiscard}
	c := &cobra.Command{
		Use: "discard [NUMBER...] --reason TEXT", Short: "End dead letters without an effect, and keep the reason",
		Long: `End dead letters without an effect. The reason is kept in the table discarded for 30 days; the body is
gone at once, and nothing brings it back. With numbers each is a transaction of its own; with a filter, or --all, it is
a job as with retry.`,
		Example: `  edda dead discard 17 18 --reason "sent twice by the import of May"
  edda dead discard --group 373371abe806 --reason "the load test" --yes`,
		RunE: func(c *cobra.Command, args []string) error {
			job, err := m.isJob(c, args)
			switch {
			case err != nil:
				return err
			case strings.TrimSpace(reason) == "" && m.resume == 0:
				return usage(c, errors.New(`--reason is missing: say why, for those who ask where the message went`))
			case job:
				return t.endMany(c, m, reason)
			}
			return t.endLetters(c, args, "discarded",
				func(l ending) error { return l.store.Discard(l.ctx, t.pool, l.number, reason) })
		},
	}
	m.add(c)
	c.Flags().StringVar(&reason, "reason", "", "why, for the record (required, but with --resume)")
	return c
}
