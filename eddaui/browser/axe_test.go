package browser

import (
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
	axeVersion = "4.14.1"
	axeSum     = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
)

// readAxe is the text of axe.min.js in the version that is pinned.
func readAxe(t *testing.T) string {
	t.Helper()
	file := os.Getenv("AXE")
	if file == "" {
		dir := t.TempDir()
		pack := exec.Command("npm", "pack", "--silent", "--pack-destination", dir, "axe-core@"+axeVersion)
		if out, err := pack.CombinedOutput(); err != nil {
			t.Fatalf("fetch axe-core: %v\n%s\nAXE=FILE names a copy of axe.min.js", err, out)
		}
		tar := exec.Command("tar", "-xzf", filepath.Join(dir, "axe-core-"+axeVersion+".tgz"), "-C", dir)
		if out, err := tar.CombinedOutput(); err != nil {
			t.Fatalf("unpack axe-core: %v\n%s", err, out)
		}
		file = filepath.Join(dir, "package", "axe.min.js")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != axeSum {
		t.Fatalf("%s has the sum %x, want that of axe-core %s", file, sum, axeVersion)
	}
	return string(text)
}

// barriers are what axe finds on the page that is open, by the rules of WCAG 2.2 AA.
func (v *visitor) barriers(axe string) []string {
	v.t.Helper()
	var result string
	const run = `axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]})
		.then(r => JSON.stringify(r.violations.map(x => ({id: x.id, help: x.help,
			nodes: x.nodes.slice(0, 3).map(n => n.html.slice(0, 200) + " " + (n.failureSummary || ""))}))))`
	v.do("look for barriers", chromedp.Evaluate(axe+";0", nil),
		chromedp.Evaluate(run, &result, func(p *runtime.EvaluateParams) *runtime.EvaluateParams {
			return p.WithAwaitPromise(true)
		}))
	var found []struct {
		ID, Help string
		Nodes    []string
	}
	if err := json.Unmarshal([]byte(result), &found); err != nil {
		v.t.Fatal(err)
	}
	var all []string
	for _, f := range found {
		all = append(all, fmt.Sprintf("%s: %s\n\t%s", f.ID, f.Help, strings.Join(f.Nodes, "\n\t")))
	}
	return all
}
