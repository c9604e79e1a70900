package main

import (
	"regexp"
	"strings"
)

// statement is a named statement of an embedded file.
type statement struct {
	file, name, text string
	begin            int
}

var statementHead = regexp.MustCompile(`(?m)^-- name: (\w+)$`)

func statements(file, text string) (all []statement) {
	heads := statementHead.FindAllStringSubmatchIndex(text, -1)
	for n, h := range heads {
		end := len(text)
		if n+1 < len(heads) {
			end = heads[n+1][0]
		}
		all = append(all, statement{file: file, name: text[h[2]:h[3]], begin: h[1], text: text[h[1]:end]})
	}
	return all
}

// sqlWord is a word or a sign of a statement.
type sqlWord struct {
	text     string // upper case
	from, to int
	depth    int // of parentheses
}

var sqlParts = regexp.MustCompile(`--[^\n]*|'(?:[^']|'')*'|\$\$|[$:\w.]+|[(),;]|[^\s\w]`)

func sqlWords(text string) (words []sqlWord) {
	depth := 0
	for _, at := range sqlParts.FindAllStringIndex(text, -1) {
		word := strings.ToUpper(text[at[0]:at[1]])
		switch {
		case strings.HasPrefix(word, "--"), word == "$$":
			continue
		case word == ")":
			depth--
		}
		words = append(words, sqlWord{text: word, from: at[0], to: at[1], depth: depth})
		if word == "(" {
			depth++
		}
	}
	return words
}

// sqlEdits returns all edits of a statement:
//
//	conjunct  a condition of several is always true, so that its parameters keep their types
//	lock      rows are not locked
//	skip      a statement waits for locked rows, and does not skip them
//	order     rows are not sorted
func sqlEdits(p *goPackage, s statement) (edits []edit) {
	words := sqlWords(s.text)
	add := func(op string, from, to int, now string) {
		edits = append(edits, edit{p: p, op: op, file: s.file, function: s.name, from: s.begin + from,
			to: s.begin + to, now: now})
	}
	for n, w := range words {
		switch w.text {
		case "WHERE", "AND", "ON":
			last := operand(words, n)
			if last > n && !between(words, n) && words[n+1].text != "TRUE" {
				from, to := words[n+1].from, words[last].to
				add("conjunct", from, to, "("+s.text[from:to]+" OR true)")
			}
		case "FOR":
			lock, skip := locking(words[n:])
			if lock > 0 {
				add("lock", w.from, words[n+lock].to, "")
			}
			if skip > 0 {
				add("skip", words[n+skip].from, words[n+skip+1].to, "")
			}
		case "ORDER":
			if last := operand(words, n); last > n && (n < 2 || words[n-2].text != "GROUP") {
				add("order", w.from, words[last].to, "")
			}
		}
	}
	return edits
}

// ends are the words that end a condition, or a list of columns to sort by, unless they are in parentheses.
var ends = regexp.MustCompile(`^(AND|OR|WHERE|GROUP|ORDER|HAVING|WINDOW|LIMIT|OFFSET|FETCH|FOR|RETURNING|UNION|` +
	`EXCEPT|INTERSECT|ON|DO|SET|LEFT|RIGHT|FULL|INNER|CROSS|JOIN|WHEN|THEN|ELSE|END|LOOP|ROWS|RANGE|INTO|AS|;)$`)

// operand returns the last word of the condition or the list that follows a word, or the word itself if neither does.
func operand(words []sqlWord, n int) int {
	head, last, ranges := words[n], n, 0
	for i := n + 1; i < len(words) && words[i].depth >= head.depth; i++ {
		w := words[i]
		if w.depth == head.depth {
			condition := head.text != "ORDER"
			switch {
			case w.text == "CONFLICT", w.text == "CONSTRAINT", w.text == "CASE": // words of a CASE end conditions, too
				return n
			case condition && (w.text == "," || w.text == "DESC" || w.text == "FROM" && words[i-1].text != "DISTINCT"),
				ends.MatchString(w.text) && (w.text != "AND" || ranges == 0):
				return last
			case w.text == "BETWEEN":
				ranges++
			case w.text == "AND":
				ranges--
			}
		}
		last = i
	}
	return last
}

// between reports whether an AND belongs to a BETWEEN.
func between(words []sqlWord, n int) bool {
	for i := n - 1; words[n].text == "AND" && i >= 0 && words[i].depth >= words[n].depth; i-- {
		if words[i].depth == words[n].depth {
			if words[i].text == "BETWEEN" {
				return true
			}
			if ends.MatchString(words[i].text) {
				return false
			}
		}
	}
	return false
}

// locking returns the last word of a locking clause that begins at the first word, and the SKIP in it, or 0.
func locking(words []sqlWord) (lock, skip int) {
	text := func(n int) string {
		if n < len(words) {
			return words[n].text
		}
		return ""
	}
	n := 1
	for text(n) == "NO" || text(n) == "KEY" {
		n++
	}
	if text(n) != "UPDATE" && text(n) != "SHARE" {
		return 0, 0
	}
	if text(n+1) == "OF" {
		n += 2
		for text(n+1) == "," {
			n += 2
		}
	}
	switch text(n + 1) {
	case "SKIP":
		return n + 2, n + 1
	case "NOWAIT":
		return n + 1, 0
	}
	return n, 0
}
