package deadletter

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/edda-go/edda/internal/store/audit"
	"github.com/edda-go/edda/recoverability"
	"github.com/jackc/pgx/v5"
)

// MostNote is the largest size of a note in bytes.
const MostNote = 2000

// ErrNote means that a text is longer than MostNote, not UTF-8, or has characters that are not printed.
var ErrNote = errors.New("the note is invalid")

const noteVerb = "dead.note"

// noteTarget returns the target under which the audit records a group.
func noteTarget(group string) string { return "group " + group }

// noted is the part of an audit entry that contains a note.
type noted struct {
	Note string `json:"note"`
}

// SetNote replaces the note of a group; "" removes it. It returns ErrNote, or ErrNotFound for a group without letters.
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
	letters, err := s.List(ctx, tx, recoverability.LetterFilter{Group: group, Limit: 1})
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

// joiner joins several characters to one, for example in emoji.
const joiner = '\u200d'

// checkNote refuses characters that readers would not see.
func checkNote(text string) error {
	unseen := func(r rune) bool {
		return !unicode.IsPrint(r) && !unicode.Is(unicode.Zs, r) && r != '\n' && r != '\t' && r != joiner
	}
	switch {
	case len(text) > MostNote:
		return fmt.Errorf("%w: it has %d bytes, the limit is %d", ErrNote, len(text), MostNote)
	case !utf8.ValidString(text):
		return fmt.Errorf("%w: it is not UTF-8 text", ErrNote)
	case strings.ContainsFunc(text, unseen):
		return fmt.Errorf("%w: it has invisible characters", ErrNote)
	}
	return nil
}

// notesOf returns the notes of groups by their names. Groups without a note are left out.
func notesOf(
	ctx context.Context, q Queryer, from *audit.Store, groups ...string,
) (map[string]recoverability.GroupNote, error) {
	targets := make([]string, len(groups))
	for n, group := range groups {
		targets[n] = noteTarget(group)
	}
	entries, err := from.Newest(ctx, q, noteVerb, targets...)
	if err != nil {
		return nil, err
	}
	found := map[string]recoverability.GroupNote{}
	for _, e := range entries {
		var is noted
		if err := json.Unmarshal(e.After, &is); err != nil {
			return nil, fmt.Errorf("entry %d of the audit: %w", e.Number, err)
		}
		if is.Note != "" {
			found[strings.TrimPrefix(e.Target, noteTarget(""))] = recoverability.GroupNote{Text: is.Note,
				By: cmp.Or(e.Actor, e.Role), At: e.At}
		}
	}
	return found, nil
}

// addNotes reads the notes of groups into them.
func addNotes(ctx context.Context, q Queryer, from *audit.Store, groups []recoverability.LetterGroup) error {
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
