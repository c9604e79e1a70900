package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/spf13/cobra"
)

// sending is the command line of edda send.
type sending struct {
	message  operate.OutgoingMessage
	body     string // a file; "-" is the standard input
	raw      bool
	headers  []string
	instance string
	id       string
}

func (t *tool) sendCommand() *cobra.Command {
	s := &sending{}
	c := &cobra.Command{
		Use: "send KIND --body FILE", Short: "Send a message",
		Long: `Send a message, whose body is a file, or the standard input for "-". It goes to the endpoint that
consumes the kind, or to the endpoint of --to. With --instance it goes to one living instance, whatever its body: a lost
answer can be sent again. The kind of an answer has no consumer, so give --to too. The body must be JSON unless --raw is
given. With --id it is written once, however often the command runs within seven days.`,
		Example: `  edda send order.place --body order.json --reason "lost by the shop"
  echo '{"OrderID":"7"}' | edda send order.cancel --body - --delay 10m --header tenant=acme
  edda send card.paid --body paid.json --to orders --instance order/2026-0007`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			s.message.Kind = args[0]
			if err := s.read(c, t); err != nil {
				return err
			}
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (view.View, error) {
				id, duplicate, err := op.Messages().Send(ctx, s.message)
				return sentView(id, duplicate), err
			})
		},
	}
	s.add(c)
	c.Flags().StringVar(&s.instance, "instance", "", "send it to this living instance, given as SAGA/KEY")
	c.Flags().StringVar(&s.id, "id", "", "the id of the message; sending it twice writes it once")
	return c
}

// sentView shows the result of a send.
func sentView(id saga.ID, duplicate bool) view.View {
	o := view.Object{"message", id, "duplicate", duplicate}
	if duplicate {
		return lineOf(o, "Message %s was sent before, and is not sent again.", id)
	}
	return lineOf(o, "Message %s is sent.", id)
}

// add adds the flags of a message to an endpoint or to instances.
func (s *sending) add(c *cobra.Command) {
	c.Flags().StringVar(&s.body, "body", "", `file with the body; "-" is the standard input (required)`)
	c.Flags().BoolVar(&s.raw, "raw", false, "accept a body that is not JSON")
	c.Flags().StringVar(&s.message.To, "to", "", "send it to this endpoint")
	c.Flags().StringArrayVar(&s.headers, "header", nil, "header, as NAME=VALUE; may be repeated")
	c.Flags().DurationVar(&s.message.Delay, "delay", 0, "how long after now the message is due")
}

// again returns the flags that send the same message.
func (s *sending) again() string {
	flags := " --body " + quoted(s.body)
	if s.raw {
		flags += " --raw"
	}
	if s.message.To != "" {
		flags += " --to " + quoted(s.message.To)
	}
	for _, header := range s.headers {
		flags += " --header " + quoted(header)
	}
	if s.message.Delay > 0 {
		flags += " --delay " + s.message.Delay.String()
	}
	return flags
}

// read reads the flags that need no database.
func (s *sending) read(c *cobra.Command, t *tool) (err error) {
	m := &s.message
	m.Headers = map[string]string{}
	for _, header := range s.headers {
		name, value, ok := strings.Cut(header, "=")
		if !ok || name == "" {
			return usage(c, fmt.Errorf("--header %s: want NAME=VALUE", view.Escape(header)))
		}
		m.Headers[name] = value
	}
	if s.instance != "" {
		ok := false
		if m.Saga, m.Key, ok = strings.Cut(s.instance, "/"); !ok || m.Saga == "" || m.Key == "" {
			return usage(c, fmt.Errorf("--instance %s: want SAGA/KEY", view.Escape(s.instance)))
		}
	}
	if s.id != "" {
		if m.ID, err = saga.ParseID(s.id); err != nil {
			return usage(c, fmt.Errorf("--id %s: %w", view.Escape(s.id), err))
		}
	}
	if m.Delay < 0 {
		return usage(c, fmt.Errorf("--delay %v is in the past", m.Delay))
	}
	if s.body == "" {
		return usage(c, errors.New("--body is missing: a file, or - for the standard input"))
	}
	if m.Body, err = t.readFile(s.body, "the body"); err == nil && !s.raw && !json.Valid(m.Body) {
		err = errors.New("the body is not JSON: --raw sends it as it is")
	}
	return err
}
