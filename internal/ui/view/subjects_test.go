package view

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/history/whereabouts"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
)

// cells joins the cells of the only row.
func cells(l List) string { return strings.Join(l.Rows[0].Cells, "|") }

func TestCellsSayWhatHolds(t *testing.T) {
	t.Parallel()
	now := someTime
	held := scheduler.LeaseInfo{Name: "n", Holder: "h", Held: true, Now: now, Expires: now.Add(time.Minute)}
	resigning, free := held, held
	resigning.Resigning, free.Held = true, false
	for _, c := range []struct{ got, want string }{
		{cells(Endpoints([]operate.EndpointSettings{{Endpoint: "e"}})), "e|open||||program|endpoint|program"},
		{cells(Endpoints([]operate.EndpointSettings{{Endpoint: "e", Relay: true}})), "e|open||||-|relay|program"},
		{cells(Endpoints([]operate.EndpointSettings{{Endpoint: "e", Paused: true, PausedBy: "ann", Concurrency: 3,
			History: history.Options{Level: history.Bodies, Sample: 0.25}}})), "e|paused||ann||3|endpoint|bodies 25%"},
		{cells(Queues([]operate.QueueInfo{{Endpoint: "e", Ready: operate.CountLimit, Kinds: []string{"a", "b"}}})),
			"e|~100000|0|0|0||endpoint|a b"},
		{cells(Leases([]scheduler.LeaseInfo{held})), "n|h|0|yes||1m0s"},
		{cells(Leases([]scheduler.LeaseInfo{resigning})), "n|h|0|resigning||1m0s"},
		{cells(Leases([]scheduler.LeaseInfo{free})), "n|h|0|no||"},
		{cells(Limits([]operate.LimitInfo{{Name: "n", Limit: 2}}, nil)), "n|2|0|0|0||-|program"},
		{cells(Limits([]operate.LimitInfo{{Name: "n", Declared: 4, Operated: true}}, nil)), "n|0|0|0|0||4|operator"},
		{filterText(recoverability.LetterFilter{}), "--all"},
		{filterText(recoverability.LetterFilter{Endpoint: "e", MessageID: someID, DiedFrom: now, DiedBefore: now}),
			"--endpoint e --message " + someID.String() + " --since 2026-11-21T10:00:00.000001Z --until " +
				"2026-11-21T10:00:00.000001Z"},
	} {
		if c.got != c.want {
			t.Errorf("got  %s\nwant %s", c.got, c.want)
		}
	}
}

// The largest group comes first, and of two groups of the same size the one with the newer letter.
func TestLargeGroupsStandFirst(t *testing.T) {
	t.Parallel()
	groups := []recoverability.LetterGroup{{Name: "few", Count: 1}, {Name: "old", Count: 9, Last: someTime},
		{Name: "new", Count: 9, Capped: true, Last: someTime.Add(1)}}
	l := LetterGroups(groups, "x")
	for n, want := range []string{"new|9+|", "old|9|", "few|1|"} {
		if got := strings.Join(l.Rows[n].Cells, "|"); !strings.HasPrefix(got, want) {
			t.Errorf("row %d is %s, want %s", n, got, want)
		}
	}
	if groups[0].Name != "few" {
		t.Error("the groups that were given are in another order now")
	}
}

// A part that cannot be read is reported, and the rest is shown.
func TestDamagedMessagesAreShown(t *testing.T) {
	t.Parallel()
	v := Letter(recoverability.Letter{Number: 7, Header: []byte("no header"), Error: "bad"}, false)
	text, err := v.JSON.Line()
	if err != nil || !strings.Contains(text, `"headers":{},"header_error":"`) ||
		v.Parts[3] != Line("header, which is none:") || v.Parts[4] != Block("no header") {
		t.Errorf("%s %v %q", text, err, v.Parts)
	}
	m := operate.QueuedMessage{Info: saga.Info{From: "shop"}, Faulty: errors.New("cut short")}
	if got := headersOf(m, true); got != "from=shop unreadable: cut short" {
		t.Error(got)
	}
}

func TestTimelineHasARowForEachOutcome(t *testing.T) {
	t.Parallel()
	at := someTime
	sent := func(kind, to string, due time.Time) history.Message {
		return history.Message{Kind: kind, To: to, Due: due}
	}
	v := history.Version{Version: 2, Change: history.Began, At: at, State: []byte(`{"n":1}`), Entries: []history.Entry{
		{At: at, Fate: history.Handled, Info: history.Message{Kind: "order.place", From: "shop", Attempt: 2},
			Sent: []history.Message{sent("card.charge", "cards", time.Time{}), sent("late", "", at.Add(time.Minute)),
				sent("card.charge", "cards", time.Time{})}, Cancelled: []saga.ID{someID}},
		{At: at, Fate: history.Retried, Info: history.Message{Kind: "order.pay", Attempt: 1}, Error: "no\nmoney"},
	}}
	rows := versionRows(v)
	var lines []string
	for _, row := range rows {
		lines = append(lines, strings.Join(row, "|"))
	}
	want := []string{"2|2026-11-21 10:00:00.000Z|order.place from shop, attempt 2|began " +
		Shortened(history.Diff(nil, v.State), 100) + "|card.charge to cards ×2",
		" | | | |late in 1m0s", " | | | |1 timeout cancelled", " | |order.pay, attempt 1 failed: no…| | "}
	if strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	if line := timeline(nil); line != Line("The history has no entry of it.") {
		t.Error(line)
	}
	if lines := ExportedVersion(v); len(lines) != 3 || lines[2][1] != "state" {
		t.Errorf("%v", lines)
	}
	v.Change = history.Attempted
	if lines := ExportedVersion(v); len(lines) != 2 {
		t.Errorf("an attempt that failed has a state: %v", lines)
	}
}

// The change of an operator is in the timeline, although no message caused it.
func TestTimelineShowsAnOperator(t *testing.T) {
	t.Parallel()
	v := history.Version{Version: 3, Change: history.Repaired, At: someTime, By: "ann", Before: []byte(`{"n":1}`),
		State: []byte(`{"n":2}`)}
	if got := strings.Join(versionRows(v)[0], "|"); got != "3|2026-11-21 10:00:00.000Z|by ann|repaired: n: 1 → 2| " {
		t.Error(got)
	}
	v.Change, v.State, v.By = history.Stopped, nil, ""
	if got := strings.Join(versionRows(v)[0], "|"); got != "3|2026-11-21 10:00:00.000Z|by an operator|stopped| " {
		t.Error(got)
	}
}

// A deep tree must fit on the screen.
func TestDeepTreesNameTheirLevel(t *testing.T) {
	t.Parallel()
	root := &whereabouts.Node{}
	for range mostIndent + 1 {
		root = &whereabouts.Node{Effects: []whereabouts.Group{{Kind: "k", Nodes: []*whereabouts.Node{root}}}}
	}
	root.Effects[0].Folded, root.Effects[0].Count = true, 12
	root.Effects[0].States = map[whereabouts.State]int{whereabouts.Waiting: 10, whereabouts.Dead: 2}
	parts := Conversation(whereabouts.Conversation{Roots: []*whereabouts.Node{root}}).Parts
	none := "(unknown kind)  00000000-0000-0000-0000-000000000000"
	last := strings.Repeat("  ", mostIndent) + "(level 21) " + none
	if parts[0] != Line(none) || parts[1] != Line("  k ×12: 2 dead, 10 waiting; some of them:") ||
		parts[len(parts)-1] != Line(last) {
		t.Errorf("%q", parts)
	}
}
