package batch

import "strings"

// endsTransaction reports whether a statement in sql begins or ends a transaction. Handlers may do neither.
func endsTransaction(sql string) bool { return anyStatement(sql, endsOne) }

// alteration is the effect that a text may have on the settings of its transaction or session.
type alteration uint8

const (
	altersNothing alteration = iota
	altersTransaction
	altersSession
)

// altersSettings reports which settings a text may change. The name that set_config changes is an argument, which may
// be a parameter.
func altersSettings(sql string) (most alteration) {
	if strings.Contains(sql, "set_config") {
		return altersSession
	}
	anyStatement(sql, func(sql string) bool {
		first, rest := nextWord(sql)
		second, _ := nextWord(rest)
		switch {
		case first == "set" && (second == "local" || second == "transaction" || second == "constraints"):
			most = max(most, altersTransaction)
		case first == "set", first == "reset", first == "discard":
			most = altersSession
		}
		return most == altersSession
	})
	return most
}

// endsStatements reports whether a statement in sql deallocates all prepared statements of the connection.
func endsStatements(sql string) bool {
	return anyStatement(sql, func(sql string) bool {
		first, rest := nextWord(sql)
		if first != "deallocate" {
			return false
		}
		second, rest := nextWord(rest)
		if second == "prepare" {
			second, _ = nextWord(rest)
		}
		return second == "all"
	})
}

// anyStatement reports whether is holds for a statement of the text. It does not look at the text after a CREATE,
// because the body of a function may contain statements.
func anyStatement(sql string, is func(sql string) bool) bool {
	for {
		if is(sql) {
			return true
		}
		if !strings.Contains(sql, ";") {
			return false // as nearly all texts
		}
		if first, _ := nextWord(sql); first == "create" {
			return false
		}
		if sql = afterStatement(sql); sql == "" {
			return false
		}
	}
}

// afterStatement returns sql without its first statement and that statement's semicolon.
func afterStatement(sql string) string {
	for i := 0; i < len(sql); i++ {
		switch rest := sql[i:]; {
		case rest[0] == ';':
			return rest[1:]
		case rest[0] == '\'':
			i += quoted(rest, '\'', i > 0 && (sql[i-1] == 'e' || sql[i-1] == 'E'))
		case rest[0] == '"':
			i += quoted(rest, '"', false)
		case strings.HasPrefix(rest, "--"):
			i += through(rest, "\n", 2)
		case strings.HasPrefix(rest, "/*"):
			i += through(rest, "*/", 2)
		case rest[0] == '$':
			if tag := dollarTag(rest); tag != "" {
				i += through(rest, tag, len(tag))
			}
		}
	}
	return ""
}

// quoted returns where the quoted text at the start of sql ends. A doubled quote ends one text and begins the next.
func quoted(sql string, quote byte, escapes bool) (last int) {
	for i := 1; i < len(sql); i++ {
		switch {
		case escapes && sql[i] == '\\':
			i++
		case sql[i] == quote:
			return i
		}
	}
	return len(sql)
}

// through returns the place of the last byte of end in sql, searching from the given place.
func through(sql, end string, from int) (last int) {
	at := strings.Index(sql[from:], end)
	if at < 0 {
		return len(sql)
	}
	return from + at + len(end) - 1
}

// dollarTag returns the $tag$ at the start of sql, or "" if that is a parameter.
func dollarTag(sql string) string {
	end := strings.IndexFunc(sql[1:], func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r < 0x80
	})
	if end < 0 || sql[1+end] != '$' || end > 0 && sql[1] >= '0' && sql[1] <= '9' {
		return ""
	}
	return sql[:end+2]
}

func endsOne(sql string) bool {
	first, rest := nextWord(sql)
	second, rest := nextWord(rest)
	switch first {
	case "commit", "end", "abort", "begin", "start":
		return true
	case "prepare":
		return second == "transaction"
	case "rollback":
		if second == "work" || second == "transaction" {
			second, _ = nextWord(rest)
		}
		return second != "to"
	}
	return false
}

// nextWord cuts the first word, in lower case, from a text of SQL, and skips space and comments before it.
func nextWord(sql string) (word, rest string) {
	for {
		sql = strings.TrimLeft(sql, " \t\r\n\f\v")
		var ok bool
		switch {
		case strings.HasPrefix(sql, "--"):
			_, sql, ok = strings.Cut(sql, "\n")
		case strings.HasPrefix(sql, "/*"):
			_, sql, ok = strings.Cut(sql, "*/")
		default:
			end := strings.IndexFunc(sql, func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') })
			if end < 0 {
				end = len(sql)
			}
			return strings.ToLower(sql[:end]), sql[end:]
		}
		if !ok {
			return "", ""
		}
	}
}
