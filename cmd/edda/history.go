package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/store/ring"
	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/spf13/cobra"
)

// histories has the commands that show the history of messages and instances.
type histories struct{ *tool }

func (t histories) commands() *cobra.Command {
	c := &cobra.Command{
		Use: "history", Short: "Show the history of messages and instances, and set its level",
		Long: `Show the history of messages and of instances, living or ended, and set its level. Endpoints write the
history in the transactions that handle messages; no handler depends on it.`,
		Example: `  edda history show order 2026-0007
  edda history find 0198c0de-0000-7000-8000-000000000001
  edda history conversation 0198c0de-0000-7000-8000-000000000001
  edda history set orders bodies --sample 10%
  edda history keep 72h --size 20GB`,
		RunE: group,
	}
	c.AddCommand(t.show(), t.find(), t.conversation(), t.export(), t.ended(), endpoints(t).keepHistory(),
		border(t).keepCommand(ring.History, "messages and versions"))
	return c
}

// mostLives is the maximum number of lives of a key that are shown. A life is one instance from its start to its end.
const mostLives = 20

// lifeFlags select a life of a key.
type lifeFlags struct{ life string }

func (f *lifeFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.life, "life", "", "the life with this instance id, in place of the newest")
}

func (f *lifeFlags) check(c *cobra.Command) error {
	if _, err := saga.ParseID(f.life); f.life != "" && err != nil {
		return usage(c, fmt.Errorf("--life %s: want the id of an instance", view.Escape(f.life)))
	}
	return nil
}

// read returns the lives of a key, and the selected one.
func (f *lifeFlags) read(
	ctx context.Context, op *operate.Operator, name, key string,
) (lives []history.Life, of history.Life, err error) {
	if lives, err = op.History().Lives(ctx, name, key, mostLives); err != nil {
		return nil, of, err
	}
	if f.life == "" && len(lives) > 0 {
		return lives, lives[0], nil
	}
	ok := false
	if f.life != "" {
		id, _ := saga.ParseID(f.life) // check has read it before
		of, ok, err = op.History().Life(ctx, id)
	}
	switch {
	case err != nil:
		return nil, of, err
	case !ok || of.Saga != name || of.Key != key:
		return nil, of, fmt.Errorf("history has no such life of saga %s/%s: it never began, or ended longer ago than "+
			"history keeps, or its endpoint writes no history: %w", name, key, errNotFound)
	}
	return lives, of, nil
}

const timelinePage = 20

func (t histories) show() *cobra.Command {
	flags, before, limit := &lifeFlags{}, "", 0
	c := &cobra.Command{
		Use: "show SAGA KEY", Short: "Show the versions of an instance, living or ended",
		Long: `Show the versions of an instance, living or ended: each with the messages that made it, the change of the
state, and the messages that it sent; failed attempts stand between them. A key that began more than once has several
lives: the command shows the newest and lists the others. Exit code 3: history has no life of this key.`,
		Example: `  edda history show order 2026-0007
  edda history show order 2026-0007 --before 0198c0de-0000-7000-8000-000000000001`,
		Args: arguments(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			from, err := pageID(c, before)
			if err == nil {
				err = flags.check(c)
			}
			if err != nil {
				return err
			}
			if limit < 1 || limit > 200 {
				return usage(c, fmt.Errorf("--limit is %d, want 1 to 200", limit))
			}
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (view.View, error) {
				lives, of, err := flags.read(ctx, op, args[0], args[1])
				if err != nil {
					return view.View{}, err
				}
				versions, next, err := op.History().Timeline(ctx, of, from, limit)
				return timeline(lives, of, versions, next), err
			})
		},
	}
	flags.add(c)
	c.Flags().StringVar(&before, "before", "", "older versions, from this page of the history on: the end of the "+
		"page before")
	c.Flags().IntVar(&limit, "limit", timelinePage, "versions, at most 200")
	return c
}

// timeline shows a life, and the commands that show more of it and the other lives of its key.
func timeline(lives []history.Life, of history.Life, versions []history.Version, next saga.ID) view.View {
	v := view.Timeline(of, lives, versions, next)
	if !next.IsZero() {
		v.Parts = append(v.Parts, linef("There may be more: --before %s", next))
	}
	for _, l := range lives {
		if l.ID != of.ID {
			v.Parts = append(v.Parts, linef("other life: %s; --life %s", view.LifeText(l), l.ID))
		}
	}
	return v
}

// pageID reads the id of a page of the history.
func pageID(c *cobra.Command, text string) (id saga.ID, err error) {
	if text == "" {
		return id, nil
	}
	if id, err = saga.ParseID(text); err != nil {
		return id, usage(c, fmt.Errorf("--before %s: want a UUID", view.Escape(text)))
	}
	return id, nil
}

func (t histories) find() *cobra.Command {
	bodies := false
	c := &cobra.Command{
		Use: "find ID", Short: "Report where a message is and why, with its attempts; or show an instance",
		Long: `Report where a message is and why it waits, or how it ended, and show each attempt. With the id of an
instance the command works as "edda history show". Queues have no index of ids, so the command reads all of them: about
a second for ten million messages. Exit code 3: no queue, dead letter or history has the id.`,
		Example: `  edda history find 0198c0de-0000-7000-8000-000000000001
  edda history find 0198c0de-0000-7000-8000-000000000001 --body --json`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := saga.ParseID(args[0])
			if err != nil {
				return usage(c, fmt.Errorf("%s: want the id of a message or an instance, a UUID", view.Escape(args[0])))
			}
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (view.View, error) {
				life, ok, err := op.History().Life(ctx, id)
				if err == nil && ok {
					versions, next, err := op.History().Timeline(ctx, life, saga.ID{}, timelinePage)
					return timeline([]history.Life{life}, life, versions, next), err
				}
				if err != nil {
					return view.View{}, err
				}
				m, err := op.History().Message(ctx, id)
				if err != nil {
					return view.View{}, err
				}
				if !m.Known() {
					return view.View{}, fmt.Errorf("message or instance %s: %s: %w", id, m.Places[0].Says(),
						errNotFound)
				}
				return view.Trace(m, bodies), nil
			})
		},
	}
	c.Flags().BoolVar(&bodies, "body", false, "show bodies, if history keeps them")
	return c
}

func (t histories) conversation() *cobra.Command {
	most, mermaid := 0, false
	c := &cobra.Command{
		Use: "conversation ID", Short: "Show the messages that followed from a message, as a tree of causes",
		Long: `Show the conversation of a message as a tree: below each message the messages that its handlers sent, and
where each of them is. If one message caused more than 10 messages of one kind, they are folded. ID is the id of any
message of the conversation, or its own. Exit code 3: history does not have the id.`,
		Example: `  edda history conversation 0198c0de-0000-7000-8000-000000000001`,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := saga.ParseID(args[0])
			if err != nil {
				return usage(c, fmt.Errorf("message id %s: want a UUID", view.Escape(args[0])))
			}
			if most < 1 || most > 10_000 {
				return usage(c, fmt.Errorf("--limit is %d, want 1 to 10000", most))
			}
			if err := oneFormat(c, t.json, mermaid); err != nil {
				return err
			}
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (view.View, error) {
				conversation, ok, err := op.History().Conversation(ctx, id, most)
				if err == nil && !ok {
					err = fmt.Errorf("history has no message and no conversation %s: %w", id, errNotFound)
				}
				v := view.Conversation(conversation)
				if conversation.More {
					v.Parts = append(v.Parts, view.Line("There are more messages: --limit"))
				}
				return asGraph(v, mermaid), err
			})
		},
	}
	c.Flags().IntVar(&most, "limit", 1000, "messages, at most 10000")
	c.Flags().BoolVar(&mermaid, "mermaid", false, "print a flowchart of Mermaid")
	return c
}

func (t histories) ended() *cobra.Command {
	outcome, after, limit := "", "", 0
	c := &cobra.Command{
		Use: "ended SAGA", Short: "Show instances that have ended, the newest first",
		Example: `  edda history ended order
  edda history ended order --outcome completed --limit 200`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			ended, id, err := placeAfter(c, after)
			if err != nil {
				return err
			}
			if limit < 1 || limit > 200 {
				return usage(c, fmt.Errorf("--limit is %d, want 1 to 200", limit))
			}
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (view.View, error) {
				lives, err := op.History().Ended(ctx, history.EndedOf{Saga: args[0],
					Outcome: history.Outcome(outcome), Before: ended, BeforeID: id, Most: limit})
				return listed(view.Lives(lives, limit), "History has no ended instance."), err
			})
		},
	}
	c.Flags().StringVar(&outcome, "outcome", "", "only instances with this end: completed, or stopped by an operator")
	c.Flags().StringVar(&after, "after", "", "continue after this one, given as ENDED/INSTANCE: the end of the page "+
		"before")
	c.Flags().IntVar(&limit, "limit", 50, "instances, at most 200")
	return c
}

func (t histories) export() *cobra.Command {
	flags := &lifeFlags{}
	c := &cobra.Command{
		Use: "export SAGA KEY", Short: "Print a life as JSON lines: its messages with their bodies, and its states",
		Long: `Print a life as JSON lines, the oldest first: one line of type "life", then one line of type "message"
for each attempt, with its body and the messages it sent if history keeps bodies, and after the messages of a
transaction one line of type "state". A test can replay a life from these lines. Control characters are escaped.`,
		Example: `  edda history export order 2026-0007 > life.jsonl
  edda history export order 2026-0007 | jq 'select(.type == "state") | .state'`,
		Args: arguments(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := flags.check(c); err != nil {
				return err
			}
			ctx, op, err := t.open(c.Context())
			if err != nil {
				return err
			}
			_, of, err := flags.read(ctx, op, args[0], args[1])
			if err == nil {
				err = t.exportLife(ctx, op, of)
			}
			return causeOf(ctx, err)
		},
	}
	flags.add(c)
	return c
}

// exportPage is the number of versions that are in memory at the same time.
const exportPage = 100

func (t histories) exportLife(ctx context.Context, op *operate.Operator, of history.Life) error {
	pages := []saga.ID{{}} // the newest first, the order of a timeline
	for {
		_, next, err := op.History().Timeline(ctx, of, pages[len(pages)-1], exportPage)
		if err != nil {
			return err
		}
		if next.IsZero() {
			break
		}
		pages = append(pages, next)
	}
	if err := t.jsonLine(view.ExportedLife(of)); err != nil {
		return err
	}
	for _, page := range slices.Backward(pages) {
		versions, _, err := op.History().Timeline(ctx, of, page, exportPage)
		if err != nil {
			return err
		}
		for _, v := range versions {
			for _, line := range view.ExportedVersion(v) {
				if err := t.jsonLine(line); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// jsonLine prints an object on one line.
func (t histories) jsonLine(o view.Object) error {
	line, err := o.Line()
	if err == nil {
		_, err = io.WriteString(t.out, line)
	}
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// identity is one meaning of an id.
type identity struct{ is, says, command string }

func (t histories) findCommand() *cobra.Command {
	return &cobra.Command{
		Use: "find ID", Short: "Identify an id, and name the command that shows it",
		Long: `Identify an id, and name the command that shows it: the id of a message, a conversation, an instance of a
saga, or a run of a manifest, or the number of a dead letter. Exit code 3: the id is unknown, or history has deleted
it.`,
		Example: `  edda find 0198c0de-0000-7000-8000-000000000001
  edda find 17`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := saga.ParseID(args[0])
			if number, noNumber := strconv.ParseInt(args[0], 10, 64); noNumber == nil {
				return t.operate(c, func(ctx context.Context, op *operate.Operator) (view.View, error) {
					l, err := op.DeadLetters().Show(ctx, number)
					says := fmt.Sprintf("message %s of endpoint %s, dead since %s", l.MessageID, l.Endpoint,
						view.Moment(l.Died))
					return found(args[0], []identity{{"dead letter", says, "edda dead show " + args[0]}}), err
				})
			}
			if err != nil {
				return usage(c, fmt.Errorf("%s: want a UUID, or the number of a dead letter", view.Escape(args[0])))
			}
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (view.View, error) {
				all, err := t.identities(ctx, op, id)
				if err == nil && len(all) == 0 {
					err = fmt.Errorf("no message, instance, conversation or run has the id %s: %w", id,
						errNotFound)
				}
				return found(id.String(), all), err
			})
		},
	}
}

func found(id string, all []identity) view.View {
	list := view.List{Name: "found", Columns: []string{"IS", "SAYS", "COMMAND"}}
	for _, f := range all {
		list.Rows = append(list.Rows, view.Row{JSON: view.Object{"is", f.is, "says", f.says, "command", f.command},
			Cells: []string{f.is, f.says, f.command}})
	}
	v := list.View()
	v.JSON = append(view.Object{"id", id}, v.JSON...)
	return v
}

func (t histories) identities(ctx context.Context, op *operate.Operator, id saga.ID) (all []identity, err error) {
	life, ok, err := op.History().Life(ctx, id)
	if err != nil {
		return nil, err
	}
	if ok {
		return []identity{{"instance", view.LifeText(life), "edda history show " + quoted(life.Saga) + " " +
			quoted(life.Key) + " --life " + id.String()}}, nil
	}
	s, err := scheduler.NewStore(t.pool, scheduler.StoreOptions{Schema: t.schemaName()})
	if err != nil {
		return nil, err
	}
	if r, err := s.RunOf(ctx, id); err == nil {
		all = append(all, identity{"run", fmt.Sprintf("of manifest %s, %s", r.Manifest, r.State),
			"edda run show " + id.String()})
	} else if !errors.Is(err, scheduler.ErrNoRun) {
		return nil, err
	}
	m, err := op.History().Message(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, p := range m.Places {
		if !m.Known() {
			break
		}
		all = append(all, identity{"message", m.Info.Kind + ": " + p.Says(), "edda history find " + id.String()})
		if p.Letter > 0 {
			number := strconv.FormatInt(p.Letter, 10)
			all = append(all, identity{"dead letter", number, "edda dead show " + number})
		}
	}
	if m.Known() && m.Info.Conversation == id && slices.ContainsFunc(m.Attempts,
		func(e history.Entry) bool { return len(e.Sent) > 0 }) {
		all = append(all, identity{"conversation", "it began with this message",
			"edda history conversation " + id.String()})
	}
	return all, nil
}

func (t histories) mapCommand() *cobra.Command {
	mermaid := false
	c := &cobra.Command{
		Use: "map", Short: "Show which endpoints send which kinds to which endpoints",
		Long: `Show which sagas and endpoints send which kinds to which endpoints. The consumers are the subscriptions.
The senders come from the newest 500 transactions of the history: a kind that was not sent lately, or that is sent by an
endpoint without history, has no sender here. SEEN is the number of messages in these transactions.

Faults follow below: endpoints that no process runs, events without a subscriber, messages to an endpoint that no longer
exists, and kinds that died in an endpoint because it does not handle them.`,
		Example: `  edda map
  edda map --mermaid > docs/map.mmd`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := oneFormat(c, t.json, mermaid); err != nil {
				return err
			}
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (view.View, error) {
				m, err := op.Endpoints().Map(ctx)
				v := view.Map(&m)
				if len(m.Edges) == 0 {
					v.Parts = append([]view.Part{view.Line("No endpoint subscribes to anything.")}, v.Parts[2:]...)
				}
				return asGraph(v, mermaid), err
			})
		},
	}
	c.Flags().BoolVar(&mermaid, "mermaid", false, "print a flowchart of Mermaid")
	return c
}

// oneFormat returns an error if two formats are requested.
func oneFormat(c *cobra.Command, json, mermaid bool) error {
	if mermaid && json {
		return usage(c, errors.New("give --mermaid or --json, not both"))
	}
	return nil
}

// asGraph returns v, or the graph that it shows.
func asGraph(v view.View, mermaid bool) view.View {
	if !mermaid {
		return v
	}
	graph := view.View{}
	for line := range strings.SplitSeq(strings.TrimSuffix(v.Mermaid, "\n"), "\n") {
		graph.Parts = append(graph.Parts, view.Line(line))
	}
	return graph
}
