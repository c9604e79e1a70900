package main

import (
	"encoding/json"
	"slices"
)

// entry is a part of a page, as the search reads it.
type entry struct {
	ID      int    `json:"id"`
	Page    string `json:"page"`
	Heading string `json:"heading"`
	Section string `json:"section"`
	Path    string `json:"path"`
	Text    string `json:"text"`
}

// searchIndex is a script that gives the parts of all pages to the search: a script, because a page that was opened
// from a disk may load one, and may load nothing else.
func (s *site) searchIndex() ([]byte, error) {
	entries := []entry{}
	for _, p := range append([]*page{s.home}, s.pages...) {
		for _, part := range p.parts {
			e := entry{ID: len(entries), Page: p.Title, Heading: part.Heading.Text, Path: p.Path, Text: part.Text}
			if part.Heading.ID != "" {
				e.Path += "#" + part.Heading.ID
			}
			if p.Section != nil {
				e.Section = p.Section.Name
			}
			entries = append(entries, e)
		}
	}
	text, err := json.Marshal(entries)
	return slices.Concat([]byte("window.eddaPages = "), text, []byte(";\n")), err
}
