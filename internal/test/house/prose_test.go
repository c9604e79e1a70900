package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// shapes are parts of sentences that make prose hard to read when there are many of them. The goal of each is a number
// per 10,000 words.
var shapes = []struct {
	name    string
	pattern *regexp.Regexp
	goal    float64
}{
	{"what", shape(`\bwhat\b`), 10},
	{"none", shape(`\bnone\b`), 4},
	{"those that", shape(`\b(those|ones?) (that|of|which|whose)\b`), 7},
	{"programs that speak", shape(
		`\b(tells?|told|says?|said|knows?|known|sees?|seen|asks?|asked|believes?|thinks?) `), 30},
	{"another", shape(`\banother\b`), 8},
	{"goes on", shape(`\b(goes|go|going|went) on\b`), 1},
	{"meanwhile", shape(`\bmeanwhile\b`), 1},
	{"nobody", shape(`\b(nobody|somebody|anybody|everybody)\b`), 1},
	{"of which", shape(`\b(of|for|to|in|by|from|with|at|on) (which|whom|whose)\b`), 6},
	{"so many", shape(`\bso (many|much|few)\b`), 1},
}

func shape(pattern string) *regexp.Regexp { return regexp.MustCompile("(?i)" + pattern) }

// allowed are today's numbers per 10,000 words where they are above the goal, in the order of shapes. They may only
// fall.
var allowed = map[string][]float64{
	"Go comments":   {12, 0, 9, 0, 0, 0, 0, 0, 0, 0},
	"SQL comments":  {38, 6, 18, 0, 15, 3, 3, 3, 0, 0}, // most of them in applied migrations
	"test comments": {0, 0, 0, 0, 0, 0, 0, 2, 0, 0},
}

const perWords = 10_000

// prose is the text of one kind of file.
type prose struct {
	words int
	hits  []int // of each shape
}

func (p *prose) add(text string) {
	p.words += len(word.FindAllString(text, -1))
	if p.hits == nil {
		p.hits = make([]int, len(shapes))
	}
	for i, s := range shapes {
		p.hits[i] += len(s.pattern.FindAllString(text, -1))
	}
}

var word = regexp.MustCompile(`[A-Za-z']+`)

// A sentence with such a shape is a place to read aloud. The test only counts.
func TestProseIsPlain(t *testing.T) {
	t.Parallel()
	groups := map[string]*prose{}
	add := func(group, text string) {
		if groups[group] == nil {
			groups[group] = &prose{}
		}
		groups[group].add(text)
	}
	sources(t, func(path string, text []byte) { proseOfGo(t, path, text, add) })
	files(t, []string{".sql", ".md", ".html"}, func(path string, text []byte) { proseOf(path, string(text), add) })
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		g := groups[name]
		for i, s := range shapes {
			rate := float64(g.hits[i]) * perWords / float64(g.words)
			limit := s.goal
			if len(allowed[name]) > 0 {
				limit = max(limit, allowed[name][i])
			}
			if rate > limit {
				t.Errorf("%s: %q %.1f times in 10,000 words, the limit is %.1f and the goal %.1f", name, s.name, rate,
					limit, s.goal)
			}
		}
		t.Logf("%s: %d words, %v", name, g.words, g.hits)
	}
}

var (
	directive = regexp.MustCompile(`^//(go:|nolint|lint:)`)
	fence     = regexp.MustCompile("(?s)```.*?```")
	markup    = regexp.MustCompile("`[^`\n]*`|\\([^)\n]*\\.md[^)\n]*\\)|(?m)^    .*$")
	tags      = regexp.MustCompile(`\{\{[^}]*\}\}|<[^>]*>`)
	dashes    = regexp.MustCompile(`--\s?(.*)`)
)

// proseOfGo adds the comments of a file, and its strings of three words and more if it is no test.
func proseOfGo(t *testing.T, path string, text []byte, add func(group, text string)) {
	file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	comments := "Go comments"
	if isTest(path) {
		comments = "test comments"
	}
	for _, group := range file.Comments {
		for _, c := range group.List {
			if !directive.MatchString(c.Text) && !strings.Contains(c.Text, "http") {
				add(comments, strings.TrimLeft(c.Text, "/ "))
			}
		}
	}
	if isTest(path) {
		return
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if text, err := strconv.Unquote(literal.Value); err == nil && len(strings.Fields(text)) >= 3 {
				add("strings", text)
			}
		}
		return true
	})
}

func proseOf(path, text string, add func(group, text string)) {
	switch filepath.Ext(path) {
	case ".sql":
		for _, m := range dashes.FindAllStringSubmatch(text, -1) {
			add("SQL comments", m[1])
		}
	case ".md":
		add("pages", markup.ReplaceAllString(fence.ReplaceAllString(text, " "), " "))
	case ".html":
		if !strings.Contains(path, "testdata/") {
			add("web pages", tags.ReplaceAllString(text, " "))
		}
	}
}
