package deadletter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/edda-go/edda/audit"
	"github.com/jackc/pgx/v5"
)

// Note is what somebody has written on a group: what is known, where the ticket is. It is the newest entry of the audit
// about it, so it is kept for audit.Kept, also while the group has no letters.
type Note struct {
	Text string // "" if there is none
	By   string
	At   time.Time
}

// MostNote is how many bytes a note has at most.
const MostNote = 2000

// ErrNote says that a text cannot be a note.
var ErrNote = errors.New("this is no note")

const noteVerb = "dead.note"

// noteTarget is a group as the audit names it.
func noteTarget(group string) string { return "group " + group }

// noted is what an entry of the audit has of a note.
type noted struct {
	Note string `json:"note"`
}

// SetNote writes a note on a group, in place of the one that is there; "" takes it away. Errors: ErrNote, and
// ErrNotFound for a group that has no letters.
func (s *Store) SetNote(ctx context.Context, db Beginner, group, text string) error {
	err := checkNote(text)
	if err == nil {
		err = pgx.BeginTxFunc(ctx, db, committed, func(tx pgx.Tx) error { return setNote(ctx, tx, s, group, text) })
	}
	if err != nil {
		return fmt.Errorf("note on group %.40q of dead letters: %w", group, err)
	}
	return nil
}

func setNote(ctx context.Context, tx pgx.Tx, s *Store, group, text string) error {
	letters, err := s.List(ctx, tx, Filter{Group: group, Limit: 1})
	if err != nil {
		return err
	}
	if len(letters) == 0 || group == "" { // "" is every group
		return fmt.Errorf("%w in the group", ErrNotFound)
	}
	before, err := notesOf(ctx, tx, s.audit, group)
	if err != nil {
		return err
	}
	return s.audit.Add(ctx, tx, audit.Change{Verb: noteVerb, Target: noteTarget(group),
		Before: noted{before[group].Text}, After: noted{text}})
}

// joiner makes one sign of several, as of emoji.
const joiner = '\u200d'

// checkNote refuses what people would not see as it was written.
func checkNote(text string) error {
	unseen := func(r rune) bool {
		return !unicode.IsPrint(r) && !unicode.Is(unicode.Zs, r) && r != '\n' && r != '\t' && r != joiner
	}
	switch {
	case len(text) > MostNote:
		return fmt.Errorf("%w: it has %d bytes, and may have %d", ErrNote, len(text), MostNote)
	case !utf8.ValidString(text):
		return fmt.Errorf("%w: it has bytes that are no text", ErrNote)
	case strings.ContainsFunc(text, unseen):
		return fmt.Errorf("%w: it has characters that cannot be seen", ErrNote)
	}
	return nil
}

// notesOf returns the notes of groups by their names. A group without one is left out.
func notesOf(ctx context.Context, q Queryer, from *audit.Store, groups ...string) (map[string]Note, error) {
	targets := make([]string, len(groups))
	for n, group := range groups {
		targets[n] = noteTarget(group)
	}
	entries, err := from.Newest(ctx, q, noteVerb, targets...)
	if err != nil {
		return nil, err
	}
	found := map[string]Note{}
	for _, e := range entries {
		var is noted
		if err := json.Unmarshal(e.After, &is); err != nil {
			return nil, fmt.Errorf("entry %d of the audit: %w", e.Number, err)
		}
		if is.Note != "" {
			found[strings.TrimPrefix(e.Target, noteTarget(""))] = Note{is.Note, e.By(), e.At}
		}
	}
	return found, nil
}

// addNotes reads the notes of groups.
func addNotes(ctx context.Context, q Queryer, from *audit.Store, groups []Group) error {
	names := make([]string, len(groups))
	for n, g := range groups {
		names[n] = g.Name
	}
	notes, err := notesOf(ctx, q, from, names...)
	for n := range groups {
		groups[n].Note = notes[groups[n].Name]
	}
	return err
}
