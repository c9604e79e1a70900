package house

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const distributedPage = "docs/reference/distributed-sql.md"

// construct is a feature of Postgres that our SQL relies on, by its name on the page.
type construct struct {
	name    string
	pattern *regexp.Regexp
	watched bool // the page must name every file that uses it, and not only a folder
}

func sqlConstruct(name, pattern string) construct {
	return construct{name: name, pattern: regexp.MustCompile(`(?is)` + pattern)}
}

func watchedConstruct(name, pattern string) construct {
	c := sqlConstruct(name, pattern)
	c.watched = true
	return c
}

// constructs are features that other servers may lack, or implement differently. A construct that no file uses has no
// line on the page.
var constructs = []construct{
	watchedConstruct("FOR UPDATE", `\bFOR UPDATE\b`),
	watchedConstruct("FOR NO KEY UPDATE", `\bFOR NO KEY UPDATE\b`),
	watchedConstruct("FOR SHARE, FOR KEY SHARE", `\bFOR (KEY )?SHARE\b`),
	watchedConstruct("SKIP LOCKED", `\bSKIP LOCKED\b`),
	watchedConstruct("ctid", `\bctid\b|\btid\[\]`),
	watchedConstruct("xmax", `\bxmax\b`),
	watchedConstruct("tableoid", `\btableoid\b`),
	watchedConstruct("transaction ids and snapshots",
		`\bpg_current_xact_id|\bpg_current_snapshot|\bpg_visible_in_snapshot|\bpg_xact_status|\btxid_`),
	watchedConstruct("advisory locks of a transaction", `\bpg_(try_)?advisory_xact_lock`),
	watchedConstruct("advisory locks of a session", `\bpg_(try_)?advisory_(lock|unlock)`),
	watchedConstruct("LISTEN", `"listen "`),
	watchedConstruct("NOTIFY", `\bpg_notify\b|\bNOTIFY\b|:schema\.nudge\([$:c]`),
	watchedConstruct("TRUNCATE", `\bTRUNCATE\b`),
	watchedConstruct("partitioned tables", `\bPARTITION (BY|OF)\b`),
	watchedConstruct("writes in a CTE", `\bAS (MATERIALIZED )?\(\s*(INSERT|UPDATE|DELETE)\b`),
	watchedConstruct("dynamic SQL", `\bEXECUTE format\b`),
	watchedConstruct("arguments by name", `\b\w+ => `),
	watchedConstruct("EXPLAIN", `\bEXPLAIN\b`),
	watchedConstruct("sha256", `\bsha256\(`),
	watchedConstruct("gen_random_uuid", `\bgen_random_uuid\(`),
	watchedConstruct("partial indexes", `\bCREATE (UNIQUE )?INDEX[^;]*\bWHERE\b`),
	watchedConstruct("identity columns", `\bAS IDENTITY\b`),
	watchedConstruct("foreign keys", `\bREFERENCES\b`),
	watchedConstruct("planner settings", `'(enable_\w+|plan_cache_mode|jit)'`),
	watchedConstruct("lock_timeout", `'lock_timeout'`),
	watchedConstruct("synchronous_commit", `'synchronous_commit'`),
	watchedConstruct("client_connection_check_interval", `'client_connection_check_interval'`),
	watchedConstruct("unlogged tables", `\bUNLOGGED TABLE\b`),
	sqlConstruct("settings of a transaction", `\bset_config\(`),
	sqlConstruct("plpgsql", `\bLANGUAGE plpgsql\b`),
	sqlConstruct("clock_timestamp", `\bclock_timestamp\(`),
	sqlConstruct("LATERAL", `\bLATERAL\b`),
	sqlConstruct("OFFSET 0", `\bOFFSET 0\b`),
	sqlConstruct("MATERIALIZED", `\bMATERIALIZED\b`),
	sqlConstruct("unnest of arrays", `\bunnest\(`),
	sqlConstruct("WITH ORDINALITY", `\bWITH ORDINALITY\b`),
	sqlConstruct("ON CONFLICT", `\bON CONFLICT\b`),
	sqlConstruct(`COLLATE "C"`, `\bCOLLATE "C"`),
	sqlConstruct("comparison of rows", `\(\w+\.\w+, \w+\.\w+\) >`),
	sqlConstruct("LOCK TABLE", `\bLOCK TABLE\b`),
	sqlConstruct("storage parameters", `\bfillfactor\b|\bautovacuum_`),
	sqlConstruct("json", `\bjsonb?\b`),
}

// unused matches features that the page lists as not used.
var unused = map[string]*regexp.Regexp{
	"large objects":         regexp.MustCompile(`(?i)\blo_\w+\(`),
	"triggers":              regexp.MustCompile(`(?i)\bCREATE (CONSTRAINT )?TRIGGER\b`),
	"rules":                 regexp.MustCompile(`(?i)\bCREATE (OR REPLACE )?RULE\b`),
	"extensions":            regexp.MustCompile(`(?i)\bCREATE EXTENSION\b`),
	"temporary tables":      regexp.MustCompile(`(?i)\bCREATE (TEMP|TEMPORARY) TABLE\b`),
	"cursors":               regexp.MustCompile(`(?i)\bDECLARE \w+ CURSOR\b`),
	"prepared transactions": regexp.MustCompile(`(?i)\bPREPARE TRANSACTION\b`),
}

var sqlComment = regexp.MustCompile(`(?m)--.*$`)

// ourSQL returns the text of each file that programs run in a user's database: the SQL of the library, and the Go
// files that send a statement which is in no SQL file. Comments are left out.
func ourSQL(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		path = filepath.ToSlash(path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (path != "." && strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" ||
			isTool(path+"/")):
			if path == "cmd" { // a tool for users
				return nil
			}
			return filepath.SkipDir
		case entry.IsDir() || isTest(path) || !slices.Contains([]string{".sql", ".go"}, filepath.Ext(path)):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if filepath.Ext(path) == ".sql" {
			files[path] = sqlComment.ReplaceAllString(string(text), "")
		} else if found := regexp.MustCompile(`"listen "`).FindString(string(text)); found != "" {
			files[path] = found
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The page names each construct that our SQL relies on with the files that use it: a construct without a file has no
// line, and a file that begins to use one must be named.
func TestDistributedSQLPageNamesWhatWeRelyOn(t *testing.T) {
	t.Parallel()
	files, page := ourSQL(t), read(t, distributedPage)
	lines := constructLines(page)
	for _, c := range constructs {
		var users []string
		for _, path := range slices.Sorted(maps.Keys(files)) {
			if c.pattern.MatchString(files[path]) {
				users = append(users, path)
			}
		}
		named, ok := lines[c.name]
		delete(lines, c.name)
		if ok != (len(users) > 0) {
			t.Errorf("%s: line for %q: %t; it is used by %q", distributedPage, c.name, ok, users)
			continue
		}
		for _, path := range users {
			if !slices.ContainsFunc(named, func(n string) bool {
				return n == path || !c.watched && strings.HasSuffix(n, "/") && strings.HasPrefix(path, n)
			}) {
				t.Errorf("%s: the line of %q does not name %s, which uses it", distributedPage, c.name, path)
			}
		}
		for _, n := range named {
			if !slices.ContainsFunc(users, func(path string) bool {
				return path == n || strings.HasSuffix(n, "/") &&
					strings.HasPrefix(path, n)
			}) {
				t.Errorf("%s: the line of %q names %s, which does not use it", distributedPage, c.name, n)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		t.Errorf("%s has a line for %q, which this test does not know", distributedPage, name)
	}
	for name, pattern := range unused {
		for path, text := range files {
			if pattern.MatchString(text) {
				t.Errorf("%s uses %s: give them a line in %s", path, name, distributedPage)
			}
		}
		if !strings.Contains(page, name) {
			t.Errorf("%s does not say that nothing rests on %s", distributedPage, name)
		}
	}
}

// Every construct has a line with the facts from the servers' documentation.
func TestDistributedSQLPageAnswersForEveryServer(t *testing.T) {
	t.Parallel()
	_, servers, ok := strings.Cut(read(t, distributedPage), "\n## What they say\n")
	if !ok {
		t.Fatalf("%s has no part \"What they say\"", distributedPage)
	}
	answered := map[string]bool{}
	for line := range strings.Lines(servers) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) == 6 {
			for name := range strings.SplitSeq(cells[1], ";") {
				answered[strings.ReplaceAll(strings.TrimSpace(name), "`", "")] = true
			}
		}
	}
	for name := range constructLines(read(t, distributedPage)) {
		if !answered[name] {
			t.Errorf("%s, What they say: no line for %q", distributedPage, name)
		}
	}
}

var quotedPath = regexp.MustCompile("`([^`]+)`")

// constructLines returns the lines of the table under "What we rely on": each name, with the files and folders of its
// last cell.
func constructLines(page string) map[string][]string {
	_, part, _ := strings.Cut(page, "\n## What we rely on\n")
	part, _, _ = strings.Cut(part, "\n## ")
	lines := map[string][]string{}
	for line := range strings.Lines(part) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 5 || strings.HasPrefix(cells[1], "---") || strings.TrimSpace(cells[1]) == "construct" {
			continue
		}
		name := strings.ReplaceAll(strings.TrimSpace(cells[1]), "`", "")
		lines[name] = []string{}
		for _, m := range quotedPath.FindAllStringSubmatch(cells[3], -1) {
			lines[name] = append(lines[name], m[1])
		}
	}
	return lines
}
