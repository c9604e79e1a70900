package main

import (
	"fmt"
	"strings"
)

const head = `# Licences

Edda is under the [Apache License 2.0](../../LICENSE). These are the modules that a program may link through it, beyond
the standard library, on Linux, macOS and Windows. Each requires only that its notice goes along with the program: CI
fails when a module with a different licence is linked. A program with sagas and a bus links the part ` + "`bus`" + `.

This page is written by a program from the modules themselves: ` + "`make licences`" + `.

| module | licence | linked by |
|---|---|---|
`

// pageOf is the page.
func pageOf(modules []*module) string {
	var text strings.Builder
	text.WriteString(head)
	for _, m := range modules {
		fmt.Fprintf(&text, "| %s | %s | %s |\n", m.path, m.licence, strings.Join(m.parts, ", "))
	}
	return text.String()
}
