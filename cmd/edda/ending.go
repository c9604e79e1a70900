package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/recoverability/deadletter"
	"github.com/spf13/cobra"
)

// ending is the end of one dead letter.
type ending struct {
	ctx    context.Context
	bus    *operate.Operator
	store  *deadletter.Store
	number int64
}

type failedLetter struct {
	Number int64  `json:"number"`
	Error  string `json:"error"`
}

// endLetters ends dead letters one by one. What went wrong with some is the error, after the result was printed.
func (t letters) endLetters(c *cobra.Command, args []string, done string, end func(ending) error) error {
	numbers, err := numbersOf(c, args)
	if err != nil {
		return err
	}
	ctx, op, err := t.open(c.Context())
	if err != nil {
		return err
	}
	ended, gone, failed := []int64{}, []int64{}, []failedLetter{}
	var worst error // a failure that is worth its exit code more than a number that is not there
	for _, number := range numbers {
		err := end(ending{ctx, op, op.DeadLetters(), number})
		switch {
		case err == nil:
			ended = append(ended, number)
		case errors.Is(err, deadletter.ErrNotFound):
			gone = append(gone, number)
			if worst == nil {
				worst = err
			}
		default:
			failed = append(failed, failedLetter{number, redact(err.Error(), t.database)})
			worst = causeOf(ctx, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	printErr := t.print(result{
		value: object{done, ended, "not_found", gone, "failed", failed},
		page: func(p *page) {
			for _, number := range ended {
				p.line("Dead letter %d is %s.", number, done)
			}
		},
	})
	return errors.Join(printErr, summary(worst, gone, failed))
}

// summary lists everything that went wrong, with the exit code of the worst.
func summary(worst error, gone []int64, failed []failedLetter) error {
	if len(gone)+len(failed) < 2 {
		return worst
	}
	text := ""
	for _, number := range gone {
		text += fmt.Sprintf("\n  %d: %v", number, deadletter.ErrNotFound)
	}
	for _, f := range failed {
		text += fmt.Sprintf("\n  %d: %s", f.Number, f.Error)
	}
	return listed{text: fmt.Sprintf("%d dead letters are as they were:%s", len(gone)+len(failed), text), worst: worst}
}

// listed has a text of its own, and is otherwise the worst of several errors.
type listed struct {
	text  string
	worst error
}

func (l listed) Error() string { return l.text }
func (l listed) Unwrap() error { return l.worst }
