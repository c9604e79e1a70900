package main

import (
	"go/parser"
	"go/token"
	"html"
	"strings"

	"github.com/alecthomas/chroma/v2"
	formatter "github.com/alecthomas/chroma/v2/formatters/html"
	"github.com/alecthomas/chroma/v2/lexers"
	"github.com/alecthomas/chroma/v2/styles"
)

// languages are the names of the languages of code blocks, by their mark.
var languages = map[string]string{"go": "Go", "sql": "SQL", "json": "JSON", "sh": "Shell", "yaml": "YAML"}

// classes writes the classes that the style sheet colours.
var classes = formatter.New(formatter.WithClasses(true), formatter.PreventSurroundingPre(true))

// coloured is code as HTML.
func coloured(language, code string) string {
	lexer := lexers.Get(language)
	if language == "" || lexer == nil {
		return html.EscapeString(code)
	}
	tokens, err := chroma.Coalesce(lexer).Tokenise(nil, code)
	if err != nil {
		return html.EscapeString(code)
	}
	var b strings.Builder
	if err := classes.Format(&b, styles.Fallback, tokens); err != nil {
		return html.EscapeString(code)
	}
	return b.String()
}

// isGo reports whether a block without a language is Go: it parses, and has a sign that other texts lack.
func isGo(code string) bool {
	if !strings.ContainsAny(code, "(={") {
		return false
	}
	code = strings.ReplaceAll(code, "…", "_more")
	for _, program := range []string{code, "package p\n" + code, "package p\nfunc _() {\n" + code + "\n}"} {
		if _, err := parser.ParseFile(token.NewFileSet(), "", program, parser.SkipObjectResolution); err == nil {
			return true
		}
	}
	return false
}
