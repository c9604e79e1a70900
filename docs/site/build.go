package main

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

//go:embed html/*.html
var templateFiles embed.FS

//go:embed static
var staticFiles embed.FS

var templates = template.Must(template.ParseFS(templateFiles, "html/*.html"))

// view is the data of a template.
type view struct {
	Site        *site
	Page        *page
	Description string
	Edit        string // where the text of the page can be changed
}

func (v view) Version() string      { return v.Site.version }
func (v view) Sections() []*section { return v.Site.sections }
func (v view) Home() *page          { return v.Site.home }
func (v view) Index() *page         { return v.Site.index }
func (v view) Repository() string   { return repository }

// write makes the files of a version below dir, in a folder that is named after it.
func (s *site) write(dir string) error {
	files, err := s.output()
	if err != nil {
		return err
	}
	to := filepath.Join(dir, filepath.FromSlash(s.version))
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	for name, text := range files {
		if err := save(filepath.Join(to, filepath.FromSlash(name)), text); err != nil {
			return err
		}
	}
	return s.publish(dir)
}

func save(file string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644) //nolint:gosec // a server of a different user reads it
}

// output is every file of a version, by its path on the site.
func (s *site) output() (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, p := range s.all() {
		html, err := s.html(p)
		if err != nil {
			return nil, err
		}
		files[p.Path], files[p.Markdown()] = html, []byte(s.asMarkdown(p))
	}
	for _, section := range s.sections {
		p := &page{Path: section.Dir + "/index.html", Title: section.Name, Section: section, File: indexPage}
		html, err := s.html(p)
		if err != nil {
			return nil, err
		}
		files[p.Path] = html
	}
	files["llms.txt"], files["llms-full.txt"] = []byte(s.llms("")), []byte(s.llmsFull())
	index, err := s.searchIndex()
	if err != nil {
		return nil, err
	}
	files["search-index.js"] = index
	for file := range s.images {
		if files[strings.TrimPrefix(file, "docs/")], err = fs.ReadFile(s.files, file); err != nil {
			return nil, err
		}
	}
	return files, addStatic(files)
}

func addStatic(files map[string][]byte) error {
	return fs.WalkDir(staticFiles, "static", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files[path.Join("static", strings.TrimPrefix(file, "static/"))], err = staticFiles.ReadFile(file)
		return err
	})
}

// html is a page with all that stands around its text.
func (s *site) html(p *page) ([]byte, error) {
	v := view{Site: s, Page: p, Description: description(p), Edit: repository + "/edit/" + branch + "/" + p.File}
	kind := "page.html"
	switch {
	case p == s.home:
		kind = "home.html"
	case p.Body == "":
		kind = "section.html"
	}
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, kind, v); err != nil {
		return nil, fmt.Errorf("%s: %w", p.File, err)
	}
	return b.Bytes(), nil
}

// longest is how much of a page a search engine shows.
const longest = 160

// description returns the beginning of a page, or the subject of a section.
func description(p *page) string {
	text := ""
	if len(p.parts) > 0 {
		text = p.parts[0].Text
	} else if p.Section != nil {
		text = p.Section.Name + ": " + p.Section.About
	}
	if runes := []rune(text); len(runes) > longest {
		text = string(runes[:longest])
		text = text[:strings.LastIndex(text, " ")] + " …"
	}
	return text
}
