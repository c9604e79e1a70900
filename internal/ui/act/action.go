package act

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Right is a right that an actor needs. Package eddaui has the same rights as bits, and documents each.
type Right uint8

// Rights to change something.
const (
	Retry Right = iota
	Edit
	Discard
	Pause
	Limit
	Schedule
	Send
	Repair
	Admin
)

var rightNames = [...]string{"Retry", "Edit", "Discard", "Pause", "Limit", "Schedule", "Send", "Repair", "Admin"}

func (r Right) String() string { return rightNames[r] }

// Action is an operation that people start on the pages.
type Action struct {
	Name    string // such as endpoint.pause
	Pattern string // pattern of its address, in the syntax of http.ServeMux
	Rights  []Right
	Button  string
	Says    string // its description

	fields  []field
	command func(in Input) string
	page    func(in Input) string // the page it belongs to, relative to the first page
	done    string                // a sentence about the result, with %d for each number of Done
	check   func(ctx context.Context, d *Desk, in Input) (*Preview, error)
	do      func(ctx context.Context, d *Desk, in Input) (Done, error)
	file    func(ctx context.Context, d *Desk, in Input, w io.Writer) error // in place of do: the result is a file
}

// Done is the page that an action leads to, and the numbers of its sentence.
type Done struct {
	Page    string // relative to the first page; "" is the page that the action belongs to
	Numbers []int64
}

// All returns all actions.
func All() []*Action {
	return slices.Concat(ofEndpoints, ofLetters, ofManyLetters, ofJobs, ofInstances, ofCrowds, ofTimeouts, ofMessages,
		ofManifests, ofGroups, ofRuns, ofLimits, ofBorder)
}

// Look returns a preview to confirm before the action runs, or nil if there is nothing to confirm, or if in confirms
// it.
func (a *Action) Look(ctx context.Context, d *Desk, in Input) (*Preview, error) {
	if a.check == nil {
		return nil, nil
	}
	p, err := a.check(ctx, d, in)
	if err != nil || p.agreed(in) {
		return nil, refused(err)
	}
	p.form = a.again(in, p.keep)
	return p, nil
}

// Do runs the action. It returns the address of the page that shows the result, relative to the first page.
func (a *Action) Do(ctx context.Context, d *Desk, in Input) (address string, err error) {
	done, err := a.do(ctx, d, in)
	if err != nil {
		return "", refused(err)
	}
	if done.Page == "" {
		done.Page = a.page(in)
	}
	numbers := make([]string, len(done.Numbers))
	for n, number := range done.Numbers {
		numbers[n] = strconv.FormatInt(number, 10)
	}
	query := url.Values{"done": {a.Name}}
	if len(numbers) > 0 {
		query.Set("counts", strings.Join(numbers, ","))
	}
	separator := "?"
	if strings.Contains(done.Page, "?") {
		separator = "&"
	}
	return done.Page + separator + query.Encode(), nil
}

// Named returns the name of the file that the action writes, or "" if the result is a page and Do runs it.
func (a *Action) Named(in Input) string {
	if a.file == nil {
		return ""
	}
	return in.text("saga") + ".jsonl"
}

// Write runs the action, and writes the file.
func (a *Action) Write(ctx context.Context, d *Desk, in Input, w io.Writer) error {
	return refused(a.file(ctx, d, in, w))
}

// Page returns the page that the action belongs to, relative to the first page.
func (a *Action) Page(in Input) string { return a.page(in) }

// Told returns the sentence about a result: name is the name of an action, counts are its numbers. It returns "" if
// there is no such action, so that an address cannot inject text.
func Told(name, counts string) string {
	at := slices.IndexFunc(All(), func(a *Action) bool { return a.Name == name })
	if at < 0 {
		return ""
	}
	var numbers []any
	for _, text := range strings.FieldsFunc(counts, func(r rune) bool { return r == ',' }) {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return ""
		}
		numbers = append(numbers, n)
	}
	sentence := All()[at].done
	if strings.Count(sentence, "%d") != len(numbers) {
		return ""
	}
	return fmt.Sprintf(sentence, numbers...)
}
