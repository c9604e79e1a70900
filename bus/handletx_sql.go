package bus

import "strings"

// endsTransaction tells whether a statement begins or ends a transaction, which is not a handler's to do. A string of
// several statements is not looked into: what it did is found when the batch is written, and its message dies.
func endsTransaction(sql string) bool {
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

// nextWord cuts the first word from a text of SQL, in small letters, passing over space and comments.
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
