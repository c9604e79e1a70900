package eddaui

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"strings"

	"github.com/edda-go/edda/internal/ui/live"
)

//go:embed html/*.html
var htmlFiles embed.FS

//go:embed static
var staticFiles embed.FS

// look has the templates, and the files that pages load.
type look struct {
	pages map[string]*template.Template
	parts map[string][]string // the names of the fragments of each page, in the order of the page
	sums  map[string]string   // checksums of the files, which are in their addresses
}

// fragmentName begins the name of a template that changes by itself: "fragment ID". Its element has the id, and the
// attribute data-live.
const fragmentName = "fragment "

func newLook(trace string) (*look, error) {
	l := &look{pages: map[string]*template.Template{}, parts: map[string][]string{}, sums: map[string]string{}}
	err := fs.WalkDir(staticFiles, "static", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := staticFiles.ReadFile(name)
		sum := sha256.Sum256(text)
		l.sums[name] = hex.EncodeToString(sum[:8])
		return err
	})
	if err != nil {
		return nil, err
	}
	base, err := template.New("base").Funcs(l.functions(trace)).ParseFS(htmlFiles, "html/layout.html",
		"html/parts.html", "html/forms.html")
	if err != nil {
		return nil, err
	}
	files, err := fs.Glob(htmlFiles, "html/*.html")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		name := strings.TrimSuffix(path.Base(file), ".html")
		if name == "layout" || name == "parts" || name == "forms" {
			continue
		}
		if err := l.add(base, name, file); err != nil {
			return nil, fmt.Errorf("template %s: %w", name, err)
		}
	}
	return l, nil
}

func (l *look) add(base *template.Template, name, file string) error {
	t, err := base.Clone()
	if err != nil {
		return err
	}
	if l.pages[name], err = t.ParseFS(htmlFiles, file); err != nil {
		return err
	}
	for _, part := range t.Templates() {
		if id, ok := strings.CutPrefix(part.Name(), fragmentName); ok {
			l.parts[name] = append(l.parts[name], id)
		}
	}
	return nil
}

// page writes a whole page.
func (l *look) page(w io.Writer, name string, f frame) error {
	if len(l.parts[name]) == 0 {
		f.Live = ""
	}
	return l.pages[name].ExecuteTemplate(w, "layout", f)
}

// timeText matches the text of an element time. It changes with the clock, and the script updates it.
var timeText = regexp.MustCompile(`(<time [^>]*>)[^<]*`)

// fragments writes the parts of a page that change.
func (l *look) fragments(name string, f frame) (all []live.Fragment, err error) {
	for _, id := range l.parts[name] {
		var b bytes.Buffer
		if err := l.pages[name].ExecuteTemplate(&b, fragmentName+id, f); err != nil {
			return nil, fmt.Errorf("fragment %s: %w", id, err)
		}
		html := b.String()
		all = append(all, live.Fragment{ID: id, HTML: html, Sum: timeText.ReplaceAllString(html, "$1")})
	}
	return all, nil
}

// files serves the files of the pages. Their addresses change with their content, so that browsers may keep them.
func (l *look) files() http.Handler {
	server := http.FileServerFS(staticFiles)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sum := l.sums[strings.TrimPrefix(r.URL.Path, "/")]
		switch {
		case sum == "": // neither a list of files
			http.NotFound(w, r)
			return
		case r.URL.Query().Get("v") == sum:
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		}
		server.ServeHTTP(w, r)
	})
}

// file returns the address of a file from the first page.
func (l *look) file(name string) string { return "static/" + name + "?v=" + l.sums["static/"+name] }
