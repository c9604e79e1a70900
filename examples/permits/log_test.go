package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const header = "case:concept:name,concept:name,time:timestamp,case:deadline\n"

func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log.csv")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestBadLogsAreRefusedWithLineAndColumn(t *testing.T) {
	t.Parallel()
	const good = "a,begin,2011-10-11 13:45:40.276+02:00,2011-12-06 13:41:31+01:00\n"
	for _, c := range []struct{ name, text, want string }{
		{"an empty file", "", "line 1: the file is empty"},
		{"no rows", header, "line 2: there are no events"},
		{"a missing column", "case:concept:name,concept:name,case:deadline\n",
			`line 1: there is no column "time:timestamp"; the columns are case:concept:name`},
		{"two missing columns", "concept:name,case:deadline\n",
			`no column "case:concept:name" and none "time:timestamp"`},
		{"no case", header + good + ",begin,2011-10-11 13:45:40+02:00,2011-12-06 13:41:31+01:00\n",
			`line 3, column "case:concept:name": it is empty`},
		{"no activity", header + "a,,2011-10-11 13:45:40+02:00,2011-12-06 13:41:31+01:00\n",
			`line 2, column "concept:name": it is empty`},
		{"a bad time", header + good + good + "a,end,yesterday,2011-12-06 13:41:31+01:00\n",
			`line 4, column "time:timestamp": "yesterday" is no time`},
		{"a time without a zone", header + "a,end,2011-10-11 13:45:40,2011-12-06 13:41:31+01:00\n",
			`line 2, column "time:timestamp"`},
		{"no deadline", header + "a,end,2011-10-11 13:45:40+02:00,\n", `line 2, column "case:deadline": it is empty`},
		{"two deadlines", header + good + "a,end,2011-10-12 13:45:40+02:00,2011-12-07 13:41:31+01:00\n",
			`line 3, column "case:deadline": case a has the deadline`},
		{"a short row", header + good + "a,end\n", "line 3"},
		{"an open quote", header + good + "a,\"end,2011-10-12 13:45:40+02:00,2011-12-07 13:41:31+01:00\n", "line 3"},
		{"no UTF-8", header + "a,\xff,2011-10-11 13:45:40+02:00,2011-12-06 13:41:31+01:00\n",
			`line 2, column "concept:name": "\xff" is not UTF-8`},
		{"a long case", header + strings.Repeat("a", 513) + good[1:],
			`line 2, column "case:concept:name": a case of 513 bytes`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := readLog(written(t, c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "log.csv: ") {
				t.Errorf("got  %v\nwant …%s…", err, c.want)
			}
		})
	}
}

func TestMissingFileIsNamed(t *testing.T) {
	t.Parallel()
	if _, err := readLog("nowhere.csv"); err == nil || !strings.Contains(err.Error(), "nowhere.csv") {
		t.Errorf("got %v", err)
	}
}

// The columns stand in any order, among others; the file begins with a mark of its encoding; a row has two lines.
func TestLogIsOrderedByTimeThenByLine(t *testing.T) {
	t.Parallel()
	l, err := readLog(written(t, "\ufeffx,time:timestamp,case:concept:name,case:deadline,concept:name\r\n"+
		"\"1\n1\",2011-10-11 15:00:00+02:00,a,2011-12-06 13:41:31+01:00,third\r\n"+
		"2,2011-10-11T12:00:00Z,a,2011-12-06 12:41:31+00:00,first\r\n"+
		"3,2011-10-11 13:00:00.000000+00:00,a,2011-12-06 13:41:31+01:00,fourth\r\n"+
		"4,2011-10-11 12:30:00+00:00,b,2011-12-06 13:41:31+01:00,second\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, e := range l.Events {
		order = append(order, e.Activity)
	}
	if got := strings.Join(order, " "); got != "first second third fourth" {
		t.Errorf("the order is %s", got)
	}
	if len(l.Cases) != 2 || l.Cases[0].Case != "a" || l.Cases[0].Events != 3 || l.Cases[0].Last.Line != 5 ||
		l.Cases[1].Last.Activity != "second" {
		t.Errorf("the cases are %+v", l.Cases)
	}
}

// Whatever the order in which activities come, and however often, the saga ends where the log does.
func TestDossierEndsWhereTheLogDoes(t *testing.T) {
	t.Parallel()
	l, err := readLog(generated(t, 5, 60))
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	dossiers := map[string]*dossier{}
	for range 2 {
		random.Shuffle(len(l.Events), func(i, j int) { l.Events[i], l.Events[j] = l.Events[j], l.Events[i] })
		for _, e := range l.Events {
			if dossiers[e.Case] == nil {
				dossiers[e.Case] = &dossier{}
			}
			dossiers[e.Case].take(e.message())
		}
	}
	for _, c := range l.Cases {
		d := dossiers[c.Case]
		if d.Last.Line != c.Last.Line || d.Last.Name != c.Last.Activity || len(d.Lines) != c.Events ||
			d.Again != c.Events {
			t.Errorf("case %s: the log ends with %+v after %d events, the dossier is %+v", c.Case, c.Last, c.Events, *d)
		}
	}
}

func TestPaceKeepsWithinTheRun(t *testing.T) {
	t.Parallel()
	day := func(n int) time.Time { return time.Date(2011, 1, n, 0, 0, 0, 0, time.UTC) }
	begun := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	p := pace{Begun: begun, Lasting: 10 * time.Second, First: day(1), Last: day(11)}
	for at, want := range map[int]time.Duration{-5: 0, 1: 0, 2: time.Second, 6: 5 * time.Second, 11: 10 * time.Second,
		400: 10 * time.Second} {
		if got := p.at(day(at)).Sub(begun); got != want {
			t.Errorf("day %d is %v after the beginning, want %v", at, got, want)
		}
	}
	if p.Last = p.First; !p.at(day(3)).Equal(begun) {
		t.Error("a log of one moment happens at the beginning")
	}
}
