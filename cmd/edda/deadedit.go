package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

// editing is the command line of edda dead edit.
type editing struct {
	edit   recoverability.Edit
	body   string // a file; "-" is the standard input
	editor string
	set    []string
	raw    bool
	newID  bool
	many   many   // with a patch
	patch  string // a file; "-" is the standard input
	show   int    // letters of the preview
}

func (t letters) edit() *cobra.Command {
	e := &editing{many: many{action: recoverability.JobRetry}}
	c := &cobra.Command{
		Use: "edit [NUMBER]", Short: "Change a dead letter's body or headers, and retry it",
		Long: `Change a dead letter's body or headers, and retry it, in one transaction. The original is kept in the
table dead_letter_edit, and is never deleted. The message keeps its id unless --new-id is given.

Without --body, --set, --remove and --new-id the command opens the body in an editor: $VISUAL, else $EDITOR, else vi.
JSON is indented for the editor and compacted afterwards; if you change nothing, the letter stays as it was. A body must
be JSON unless --raw is given.

With --patch and a filter, or --all, one change is applied to many letters: a JSON merge patch (RFC 7396), where null
removes a member. Without --yes the command shows some letters as they would become, and changes nothing. With --yes a
job changes and retries them, at --rate letters a second; --canary and --to work as with retry. A letter whose body is
not JSON stays.`,
		Example: `  edda dead edit 17
  edda dead edit 17 --body fixed.json --reason "the total was a text"
  edda dead edit 17 --set tenant=acme --remove trace
  edda dead edit --group 373371abe806 --patch fix.json --preview 3
  edda dead edit --group 373371abe806 --patch fix.json --yes`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if e.patch != "" {
				return t.editMany(c, e, args)
			}
			if e.many.given() || e.many.all || len(args) == 0 {
				return usage(c, errors.New("give the number of a dead letter, or a filter and --patch"))
			}
			return t.runEdit(c, e, args)
		},
	}
	e.many.add(c)
	e.many.addRetry(c)
	_ = c.Flags().MarkHidden("resume") // "edda dead jobs --resume" resumes it
	c.Flags().StringVar(&e.patch, "patch", "", `file with a JSON merge patch for many bodies; "-" is the `+
		"standard input")
	c.Flags().IntVar(&e.show, "preview", 3, "how many patched letters to show before --yes")
	c.Flags().StringVar(&e.body, "body", "", `file with the new body; "-" is the standard input`)
	c.Flags().StringVar(&e.editor, "editor", "", "editor command (default $VISUAL, else $EDITOR, else vi)")
	c.Flags().StringArrayVar(&e.set, "set", nil, "header to add or change, as NAME=VALUE; may be repeated")
	c.Flags().StringArrayVar(&e.edit.Remove, "remove", nil, "header to remove; may be repeated")
	c.Flags().BoolVar(&e.raw, "raw", false, "accept a body that is not JSON")
	c.Flags().BoolVar(&e.newID, "new-id", false, "give the message a new id: a receiver that remembers the old id "+
		"handles it as a new message")
	c.Flags().StringVar(&e.edit.Reason, "reason", "", "why, for the record")
	return c
}

func (t letters) runEdit(c *cobra.Command, e *editing, args []string) error {
	numbers, err := numbersOf(c, args)
	if err != nil {
		return err
	}
	if err := e.read(c); err != nil {
		return err
	}
	byHand := e.body == "" && len(e.set)+len(e.edit.Remove) == 0 && !e.newID
	timeout := t.timeout
	if byHand {
		timeout = t.unbounded(c) // a person may take long to edit
	}
	ctx, op, err := t.openWithin(c.Context(), timeout)
	if err != nil {
		return err
	}
	l, err := op.DeadLetters().Show(ctx, numbers[0])
	if err != nil {
		return causeOf(ctx, err)
	}
	switch {
	case byHand:
		e.edit.Body, err = t.byHand(ctx, e, l)
	case e.body != "":
		e.edit.Body, err = t.readFile(e.body, "the new body")
	}
	if err != nil {
		return err
	}
	if err := op.DeadLetters().Edit(ctx, l.Number, e.edit); err != nil {
		return causeOf(ctx, err)
	}
	id := l.MessageID
	if !e.edit.ID.IsZero() {
		id = e.edit.ID
	}
	return t.print(lineOf(view.Object{"edited", l.Number, "message", id}, "Dead letter %d is edited and retried as "+
		"message %s.",
		l.Number, id))
}

// read reads the flags that need neither database nor file.
func (e *editing) read(c *cobra.Command) error {
	e.edit.JSON, e.edit.Set = !e.raw, map[string]string{}
	for _, header := range e.set {
		name, value, ok := strings.Cut(header, "=")
		if !ok || name == "" {
			return usage(c, fmt.Errorf("--set %s: want NAME=VALUE", view.Escape(header)))
		}
		e.edit.Set[name] = value
	}
	if e.newID {
		id, err := uuid.NewV7()
		if err != nil {
			return fmt.Errorf("make an id: %w", err)
		}
		e.edit.ID = saga.ID(id)
	}
	return nil
}

var errUnchanged = errors.New("nothing was changed: \"edda dead retry\" retries " +
	"it as it is")

// byHand opens the body of l in an editor.
func (t letters) byHand(ctx context.Context, e *editing, l recoverability.Letter) ([]byte, error) {
	shown := l.Body
	if !e.raw {
		shown = []byte(view.Body(l.Body) + "\n")
	}
	dir, err := os.MkdirTemp("", "edda-edit-") // only readable by its owner, because a body may be confidential
	if err != nil {
		return nil, fmt.Errorf("edit the body: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, fmt.Sprintf("dead-letter-%d.json", l.Number))
	if err := os.WriteFile(file, shown, 0o600); err != nil {
		return nil, fmt.Errorf("edit the body: %w", err)
	}
	editor := cmp.Or(e.editor, os.Getenv("VISUAL"), os.Getenv("EDITOR"), "vi")
	command := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "edda", file)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("edit the body with %s: %w", view.Escape(editor), err)
	}
	edited, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("edit the body: %w", err)
	}
	if bytes.Equal(edited, shown) {
		return nil, errUnchanged
	}
	packed := bytes.Buffer{}
	if e.raw || json.Compact(&packed, edited) != nil {
		return edited, nil // the store reports that it is not JSON
	}
	return packed.Bytes(), nil
}

// editMany shows the result of a patch on some letters of a filter, or makes a job of the patch and runs it.
func (t letters) editMany(c *cobra.Command, e *editing, args []string) error {
	m := &e.many
	if e.body != "" || len(e.set)+len(e.edit.Remove) > 0 || e.newID || e.raw || m.resume != 0 {
		return usage(c, errors.New("--patch changes only bodies: leave out the flags of the other changes"))
	}
	if _, err := m.isJob(c, args); err != nil {
		return err
	}
	if len(args) > 0 {
		return usage(c, errors.New("--patch works on a filter: leave out the number"))
	}
	patch, err := t.readFile(e.patch, "the patch")
	if err != nil {
		return err
	}
	ctx, op, err := t.openWithin(c.Context(), t.unbounded(c))
	if err != nil {
		return err
	}
	j := recoverability.Job{Action: m.action, Rate: m.rate, Reason: e.edit.Reason, To: m.to, Patch: patch}
	if m.canary {
		j.Plan = deadletter.Canary()
	}
	if err := t.preview(ctx, op, e, patch); err != nil {
		return err
	}
	number, err := t.newJob(ctx, c, m, op.DeadLetters(), j)
	if err != nil {
		return err
	}
	return t.runJob(ctx, op, number, m.action)
}

// preview prints the result of a patch on some letters, unless the patch is to be applied.
func (t letters) preview(ctx context.Context, op *operate.Operator, e *editing, patch []byte) error {
	if e.many.yes || e.show < 1 {
		return nil
	}
	f, err := e.many.read(ctx, t)
	if err != nil {
		return err
	}
	f.Limit = e.show
	shown, err := op.DeadLetters().Preview(ctx, f, patch)
	if err != nil {
		return causeOf(ctx, err)
	}
	return t.print(view.Previews(shown))
}
