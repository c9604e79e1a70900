package edda_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// shownPart is what stands between "// README name" and "// end".
var shownPart = regexp.MustCompile(`(?s)\n\t*// README (\w+)\n\n(.*?)\n\n\t*// end\n`)

// What a reader copies from README.md is what the compiler and the example have seen.
func TestReadmeShowsTheExample(t *testing.T) {
	t.Parallel()
	readme := read(t, "README.md")
	parts := shownPart.FindAllStringSubmatch(read(t, "example_test.go")+read(t, "example_schedule_test.go"), -1)
	if len(parts) != 4 {
		t.Fatalf("the examples have %d parts for README.md, want 4", len(parts))
	}
	for _, part := range parts {
		if block := "```go\n" + outdented(part[2]) + "\n```\n"; !strings.Contains(readme, block) {
			t.Errorf("README.md has not this block, the part %q of the examples:\n%s", part[1], block)
		}
	}
	if lines := lineCount(parts[0][2]); lines != 20 {
		t.Errorf("the part %q has %d lines of code, and README.md says twenty", parts[0][1], lines)
	}
}

// linked is the target of a Markdown link to a file of the repository.
var linked = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

// testName is a test that a page calls its witness.
var testName = regexp.MustCompile("`((?:Test|Example|Fuzz|Benchmark)[A-Z]\\w*)`")

// A page that names a file or a test which was moved tells its reader nothing.
func TestPagesNameWhatIsThere(t *testing.T) {
	t.Parallel()
	defined := map[string]bool{}
	sources(t, func(path string, text []byte) {
		for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Example|Fuzz|Benchmark)\w+)\(`).FindAllSubmatch(text, -1) {
			defined[string(m[1])] = true
		}
	})
	for _, page := range pages(t) {
		text := read(t, page)
		for _, m := range linked.FindAllStringSubmatch(text, -1) {
			if target := beside(page, m[1]); !exists(target) {
				t.Errorf("%s links to %s, which is not there", page, target)
			}
		}
		for _, m := range testName.FindAllStringSubmatch(text, -1) {
			if !defined[m[1]] {
				t.Errorf("%s names %s, and there is no such test", page, m[1])
			}
		}
	}
}

// pages are the Markdown files that describe Edda as a whole.
func pages(t *testing.T) []string {
	t.Helper()
	found := []string{"README.md", "CHANGELOG.md"}
	for _, pattern := range []string{"docs/*.md", "docs/decisions/*.md"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, more...)
	}
	return found
}

// beside is where a link of page leads to.
func beside(page, link string) string { return filepath.Join(filepath.Dir(page), link) }

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// outdented takes away the tabs that the first line begins with from every line.
func outdented(code string) string {
	indent := code[:len(code)-len(strings.TrimLeft(code, "\t"))]
	return strings.ReplaceAll(strings.TrimPrefix(code, indent), "\n"+indent, "\n")
}

func lineCount(code string) (lines int) {
	for line := range strings.Lines(code) {
		if strings.TrimSpace(line) != "" {
			lines++
		}
	}
	return lines
}

// A figure of the README is one of the benchmarks' page, so that a new run changes both or neither.
func TestReadmeHasTheFiguresOfTheBenchmarks(t *testing.T) {
	t.Parallel()
	_, about, found := strings.Cut(read(t, "README.md"), "\n## How fast\n")
	about, _, ended := strings.Cut(about, "\n## ")
	if !found || !ended {
		t.Fatal("the README has no part about speed")
	}
	figures := regexp.MustCompile(`\d+[,.]\d+`).FindAllString(about, -1)
	if len(figures) < 10 {
		t.Errorf("the README has %d figures, want those of five peers", len(figures))
	}
	page := read(t, "docs/benchmarks.md")
	for _, figure := range figures {
		if figure != "10,000" && !strings.Contains(page, " "+figure+" ") {
			t.Errorf("docs/benchmarks.md does not have %s", figure)
		}
	}
}
