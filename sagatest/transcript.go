package sagatest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/saga"
)

var rewrite = flag.Bool("rewrite", false, "sagatest: accept the output of transcripts as it is now")

// Transcript runs every file that matches glob against d, each in its own Run. With -rewrite it writes the actual
// results into the files. A file is a list of
//
//	# A comment says what the reader should see.
//	deliver order.place {"OrderID":"7"}
//	----
//	order/7: new, version 1
//	  …
//	ack
//
// with an empty line after each. The input is one line:
//
//	deliver [from=endpoint] [header.name=value] kind [body]   a command, from outside unless from is given
//	publish [from=endpoint] [header.name=value] kind [body]   an event
//	reply asked kind [body]                                   the answer to the first unanswered message of kind asked
//	advance duration                                          fires what falls due
//	given key stateversion state                              an instance as another release stored it
//	show key                                                  the stored instance
//
// A body is JSON and may be left out. Words before the body contain no spaces.
func Transcript(t *testing.T, d *saga.Definition, glob string) {
	t.Helper()
	files, err := filepath.Glob(glob)
	if err != nil || len(files) == 0 {
		t.Fatalf("sagatest: no file matches %s (%v)", glob, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { transcript(t, New(t, d), file) })
	}
}

func transcript(t *testing.T, r *Run, file string) {
	t.Helper()
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := replay(r, string(before))
	if got == string(before) {
		return
	}
	if !*rewrite {
		t.Fatalf("%s: the results changed (-rewrite accepts them)\n%s", file, difference(string(before), got))
	}
	if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
		t.Fatal(err)
	}
}

// replay returns the transcript with the actual results. It uses only the comments and inputs of the old one.
func replay(r *Run, text string) string {
	var out strings.Builder
	for n, block := range strings.Split(strings.TrimRight(text, "\n"), "\n\n") {
		if n > 0 {
			out.WriteString("\n")
		}
		input, _, _ := strings.Cut(strings.Trim(block, "\n"), "\n----")
		fmt.Fprintf(&out, "%s\n", input)
		if line := command(input); line != "" {
			fmt.Fprintf(&out, "----\n%s", script{r}.command(line))
		}
	}
	return out.String()
}

// command returns the line of a block that is not a comment, or "".
func command(input string) string {
	for line := range strings.Lines(input) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			return line
		}
	}
	return ""
}

// script runs the lines of a transcript and formats their results.
type script struct{ *Run }

func (r script) command(line string) string {
	verb, rest, _ := strings.Cut(line, " ")
	switch verb {
	case "deliver":
		return r.deliverLine(saga.Command, rest)
	case "publish":
		return r.deliverLine(saga.Event, rest)
	case "reply":
		return r.replyLine(rest)
	case "advance":
		return r.advanceLine(rest)
	case "given":
		return r.givenLine(rest)
	case "show":
		return r.showLine(rest)
	}
	return fmt.Sprintf("unknown command %q\n", verb)
}

func (r script) deliverLine(intent saga.Intent, rest string) string {
	rt := r.runtime(saga.Delivery{})
	rt.Endpoint = ""
	var opts []saga.SendOption
	for {
		word, after, _ := strings.Cut(rest, " ")
		name, value, ok := strings.Cut(word, "=")
		switch {
		case !ok || strings.HasPrefix(word, "{"):
			out, err := rt.Compose(intent, raw(rest), opts...)
			if err != nil {
				return err.Error() + "\n"
			}
			return r.format(r.accept(saga.Delivery{Info: out.Info, Body: out.Body}))
		case name == "from":
			rt.Endpoint = value
		case strings.HasPrefix(name, "header."):
			opts = append(opts, saga.WithHeader(strings.TrimPrefix(name, "header."), value))
		default:
			return fmt.Sprintf("unknown option %q\n", word)
		}
		rest = after
	}
}

// raw parses "kind body".
func raw(text string) saga.Raw {
	kind, body, _ := strings.Cut(text, " ")
	return saga.Raw{Name: kind, Body: []byte(body)}
}

func (r script) replyLine(rest string) string {
	asked, answer, _ := strings.Cut(rest, " ")
	at := slices.IndexFunc(r.asked, func(o saga.Outgoing) bool { return o.Info.Kind == asked })
	if at < 0 {
		return fmt.Sprintf("no %s waits for an answer\n", asked)
	}
	in, err := r.answer(at, raw(answer))
	if err != nil {
		return err.Error() + "\n"
	}
	return r.format(r.accept(in))
}

func (r script) advanceLine(rest string) string {
	d, err := time.ParseDuration(rest)
	if err != nil {
		return err.Error() + "\n"
	}
	var out strings.Builder
	begin := r.now
	r.advance(d, func(h happened) {
		fmt.Fprintf(&out, "after %v: %v %s\n%s", r.now.Sub(begin), h.in.Info.Intent, h.in.Info.Kind, r.format(h))
	})
	if out.Len() == 0 {
		return "nothing is due\n"
	}
	return out.String()
}

func (r script) givenLine(rest string) string {
	words := strings.SplitN(rest, " ", 3)
	if len(words) < 3 {
		return "given key stateversion state\n"
	}
	version, err := strconv.Atoi(words[1])
	if err != nil {
		return err.Error() + "\n"
	}
	r.Given(words[0], version, words[2])
	return "stored\n"
}

func (r script) showLine(key string) string {
	i, ok := r.Instance(key)
	if !ok {
		return fmt.Sprintf("%s/%s: none\n", r.def.Name(), key)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s/%s: version %d, state version %d\n  state %s\n", i.Saga, i.Key, i.Version, i.StateVersion,
		i.State)
	for _, p := range i.Pending {
		fmt.Fprintf(&out, "  waits %s\n", r.timer(p))
	}
	return out.String()
}

// difference returns the first line that differs, with the lines before it.
func difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	n := 0
	for n < len(w) && n < len(g) && w[n] == g[n] {
		n++
	}
	from := max(0, n-8)
	return fmt.Sprintf("line %d\n%s\nwant:\n%s\ngot:\n%s", n+1, strings.Join(w[from:n], "\n"), lines(w, n), lines(g, n))
}

func lines(all []string, from int) string {
	return strings.Join(all[min(from, len(all)):min(from+12, len(all))], "\n")
}
