package faultproxy

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"
)

// statementName returns the name in the leading comment, or the word that opens a statement about the transaction, or
// "".
func statementName(sql string) string {
	sql = strings.TrimSpace(sql)
	for strings.HasPrefix(sql, "--") {
		line, rest, _ := strings.Cut(sql, "\n")
		comment := strings.TrimSpace(strings.TrimPrefix(line, "--"))
		if name, ok := strings.CutPrefix(comment, "name:"); ok {
			return strings.TrimSpace(name)
		}
		sql = strings.TrimSpace(rest)
	}
	// The first words are enough, and a statement may be long.
	words := strings.FieldsFunc(strings.ToLower(sql[:min(len(sql), 40)]), func(r rune) bool {
		return r == ' ' || r == '\t' || r == '\r' || r == '\n' || r == ';'
	})
	if len(words) == 0 {
		return ""
	}
	switch first := words[0]; first {
	case "begin", "commit", "savepoint", "release":
		return first
	case "start":
		return "begin"
	case "rollback":
		if len(words) > 1 && words[1] == "to" {
			return "rollback to"
		}
		return first
	default:
		return ""
	}
}

// names tracks one connection's prepared statements and portals.
type names struct {
	statements map[string]string // prepared name → statement name
	portals    map[string]string // portal → statement name
}

func newNames() names {
	return names{statements: map[string]string{}, portals: map[string]string{}}
}

// learn reads the names in a Parse, Bind or Close.
func (n names) learn(f frame) error {
	switch f.kind() {
	case kindParse:
		var m pgproto3.Parse
		if err := m.Decode(f.body()); err != nil {
			return fmt.Errorf("read Parse: %w", err)
		}
		n.statements[m.Name] = statementName(m.Query)
	case kindBind:
		var m pgproto3.Bind
		if err := m.Decode(f.body()); err != nil {
			return fmt.Errorf("read Bind: %w", err)
		}
		n.portals[m.DestinationPortal] = n.statements[m.PreparedStatement]
	case kindClose:
		var m pgproto3.Close
		if err := m.Decode(f.body()); err != nil {
			return fmt.Errorf("read Close: %w", err)
		}
		if m.ObjectType == 'S' {
			delete(n.statements, m.Name)
		} else {
			delete(n.portals, m.Name)
		}
	}
	return nil
}

// executed returns the name of the statement that an Execute or a Query runs.
func (n names) executed(f frame) (string, error) {
	if f.kind() == kindQuery {
		var m pgproto3.Query
		if err := m.Decode(f.body()); err != nil {
			return "", fmt.Errorf("read Query: %w", err)
		}
		return statementName(m.String), nil
	}
	var m pgproto3.Execute
	if err := m.Decode(f.body()); err != nil {
		return "", fmt.Errorf("read Execute: %w", err)
	}
	return n.portals[m.Portal], nil
}
