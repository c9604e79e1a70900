package deadletter

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/recoverability"
	"github.com/jackc/pgx/v5"
)

// CountLimit is the largest count of the letters of a group or a filter: counting stops there.
const CountLimit = 100_000

// MaxGroups is the largest number of groups that one call of Groups reads.
const MaxGroups = 1000

// Groups returns groups in the order of their names, and the last name that it read, or "" if there are no more. It
// probes an index for each group, and counts at most CountLimit, or CountTo, of its entries.
func (s *Store) Groups(
	ctx context.Context, q Queryer, f recoverability.GroupFilter,
) (groups []recoverability.LetterGroup, next string, err error) {
	limit := f.Limit
	if limit <= 0 || limit > MaxGroups {
		limit = MaxGroups
	}
	countTo := f.CountTo
	if countTo <= 0 || countTo > CountLimit {
		countTo = CountLimit
	}
	rows, err := q.Query(ctx, s.sql.Get("groups"), pg.Planned, f.After, limit, countTo)
	if err != nil {
		return nil, "", fmt.Errorf("list groups of dead letters: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (g recoverability.LetterGroup, err error) {
		err = row.Scan(&g.Name, &g.Endpoint, &g.Kind, &g.Count, &g.First, &g.Last, &g.Example, &g.Reason, &g.Error)
		g.First, g.Last, g.Capped = g.First.UTC(), g.Last.UTC(), g.Count >= int64(countTo)
		return g, err
	})
	if err != nil {
		return nil, "", fmt.Errorf("list groups of dead letters: %w", err)
	}
	if len(all) == limit {
		next = all[limit-1].Name
	}
	for _, g := range all {
		if (f.Endpoint == "" || g.Endpoint == f.Endpoint) && (f.Kind == "" || g.Kind == f.Kind) {
			groups = append(groups, g)
		}
	}
	if f.Notes {
		err = addNotes(ctx, q, s.audit, groups)
	}
	return groups, next, err
}

// GroupOf returns the name of a dead letter's group: twelve hexadecimal digits computed from its endpoint, its kind,
// its reason and the shape of its error.
func GroupOf(l *recoverability.Letter) string {
	h := sha256.New()
	for _, part := range []string{l.Endpoint, l.Kind, l.Reason, Shape(l.Error)} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}

// In bytes: the part of an error that its shape is made from, and the longest quoted text.
const (
	mostShape = 2048
	mostQuote = 512
)

// Shape returns an error text without the parts that differ between messages. It replaces every word with a digit,
// every long hexadecimal word and every quoted text by "#", and so a sequence of these that are separated only by
// points, colons and similar characters. Only the first 2,048 bytes count.
func Shape(text string) string {
	text = strings.ToValidUTF8(text[:min(len(text), mostShape)], "\uFFFD")
	w := shaper{}
	for before := ' '; text != ""; {
		r, size := utf8.DecodeRuneInString(text)
		switch end := quoted(text, before); {
		case end > 0:
			w.mark()
			before, text = r, text[end:]
		case isWord(r):
			word := text[:len(text)-len(strings.TrimLeftFunc(text, isWord))]
			w.word(word)
			before, text = 'x', text[len(word):]
		default:
			w.other(r)
			before, text = r, text[size:]
		}
	}
	return strings.TrimSpace(w.out.String())
}

func isWord(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
}

// quoted returns the end of the quoted text at the beginning of text, or 0. An apostrophe within a word is not a quote.
func quoted(text string, before rune) (end int) {
	quote := text[0]
	if quote != '"' && quote != '\'' && quote != '`' || isWord(before) {
		return 0
	}
	for i := 1; i < len(text) && i <= mostQuote && text[i] != '\n'; i++ {
		switch {
		case text[i] == '\\' && quote != '`':
			i++
		case text[i] == quote:
			return i + 1
		}
	}
	return 0
}

// shaper writes a shape. It holds back the text between two marks, because that text may join them.
type shaper struct {
	out    strings.Builder
	marked bool
	joint  string
}

func (w *shaper) mark() {
	if !w.marked {
		w.flush()
		w.out.WriteByte('#')
	}
	w.marked, w.joint = true, ""
}

func (w *shaper) flush() {
	w.out.WriteString(w.joint)
	w.marked, w.joint = false, ""
}

func (w *shaper) word(word string) {
	if variable(word) {
		w.mark()
		return
	}
	w.flush()
	w.out.WriteString(word)
}

// joints are the characters between the parts of one number, time, address, id or list.
const joints = ".,:;-+/\\@% "

func (w *shaper) other(r rune) {
	switch {
	case r == '#':
		w.mark()
	case w.marked && strings.ContainsRune(joints, r):
		w.joint += string(r)
	case unicode.IsSpace(r):
		w.flush()
		if s := w.out.String(); s != "" && !strings.HasSuffix(s, " ") {
			w.out.WriteByte(' ')
		}
	default:
		w.flush()
		w.out.WriteRune(r)
	}
}

// variable reports whether a word is likely to differ in the next message.
func variable(word string) bool {
	hexadecimal := len(word) >= 8
	for _, r := range word {
		if unicode.IsDigit(r) {
			return true
		}
		hexadecimal = hexadecimal && (r >= 'a' && r <= 'f' || r >= 'A' && r <= 'F')
	}
	return hexadecimal
}
