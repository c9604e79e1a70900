package main

import (
	"fmt"
	"html"
	"regexp"
	"strings"
)

var tag = regexp.MustCompile(`<[^>]*>`)

// llms lists the pages for programs that read, in the form of llmstxt.org. Links begin with prefix.
func (s *site) llms(prefix string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n> %s\n\nVersion %s. The same pages in one file: [llms-full.txt](%sllms-full.txt)\n",
		s.home.Title, s.home.parts[0].Text, s.version, prefix)
	for _, section := range s.sections {
		fmt.Fprintf(&b, "\n## %s: %s\n\n", section.Name, section.About)
		for _, p := range section.Pages {
			fmt.Fprintf(&b, "- [%s](%s%s): %s\n", p.Title, prefix, p.Markdown(),
				html.UnescapeString(tag.ReplaceAllString(string(p.About), "")))
			for _, child := range p.Children {
				fmt.Fprintf(&b, "  - [%s](%s%s)\n", child.Title, prefix, child.Markdown())
			}
		}
	}
	return b.String()
}

// llmsFull is the text of all pages in the order of reading.
func (s *site) llmsFull() string {
	var b strings.Builder
	for _, p := range append([]*page{s.home}, s.pages...) {
		here := *p
		here.Path = "llms-full.txt" // where its links lead from
		fmt.Fprintf(&b, "<!-- %s -->\n\n%s\n\n", p.Path, strings.TrimSpace(s.asMarkdown(&here)))
	}
	return b.String()
}
