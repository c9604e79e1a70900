package axe

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// axe-core is a program of 650 KB under the MPL, so it is fetched and not copied here.
const (
	version = "4.14.1"
	sum     = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
)

// Read returns the text of axe.min.js in the pinned version.
func Read(t *testing.T) string {
	t.Helper()
	file := os.Getenv("AXE")
	if file == "" {
		dir := t.TempDir()
		pack := exec.CommandContext(t.Context(), "npm", "pack", "--silent", "--pack-destination", dir,
			"axe-core@"+version)
		if out, err := pack.CombinedOutput(); err != nil {
			t.Fatalf("fetch axe-core: %v\n%s\nAXE=FILE names a copy of axe.min.js", err, out)
		}
		archive := filepath.Join(dir, "axe-core-"+version+".tgz")
		tar := exec.CommandContext(t.Context(), "tar", "-xzf", archive, "-C", dir)
		if out, err := tar.CombinedOutput(); err != nil {
			t.Fatalf("unpack axe-core: %v\n%s", err, out)
		}
		file = filepath.Join(dir, "package", "axe.min.js")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := sha256.Sum256(text); hex.EncodeToString(got[:]) != sum {
		t.Fatalf("%s has the sum %x, want that of axe-core %s", file, got, version)
	}
	return string(text)
}

const run = `axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]})
	.then(r => JSON.stringify(r.violations.map(x => ({id: x.id, help: x.help,
		nodes: x.nodes.slice(0, 3).map(n => n.html.slice(0, 200) + " " + (n.failureSummary || ""))}))))`

// Barriers returns the barriers that axe finds on the page that is open in the browser of ctx. script is the text
// from Read.
func Barriers(ctx context.Context, script string) ([]string, error) {
	var result string
	err := chromedp.Run(ctx, chromedp.Evaluate(script+";0", nil),
		chromedp.Evaluate(run, &result, func(p *runtime.EvaluateParams) *runtime.EvaluateParams {
			return p.WithAwaitPromise(true)
		}))
	if err != nil {
		return nil, fmt.Errorf("look for barriers: %w", err)
	}
	var found []struct {
		ID, Help string
		Nodes    []string
	}
	if err := json.Unmarshal([]byte(result), &found); err != nil {
		return nil, err
	}
	var all []string
	for _, f := range found {
		all = append(all, fmt.Sprintf("%s: %s\n\t%s", f.ID, f.Help, strings.Join(f.Nodes, "\n\t")))
	}
	return all, nil
}
