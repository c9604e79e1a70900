package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/edda-go/edda/eddaui"
	story "github.com/edda-go/edda/internal/test/demo/world"
	"github.com/edda-go/edda/internal/test/pgdev"
)

func TestUIServesUntilItIsInterrupted(t *testing.T) {
	w := migrated(t)
	serves(t, map[string]string{"/": "No endpoint is installed"}, "--database", pgdev.DSN(t), "--schema", w.schema)
}

// Several databases have pages under their names, and if one does not answer the others still work.
func TestUIServesSeveralDatabases(t *testing.T) {
	w := migrated(t)
	w.want(exitDone, "migrate", "install", "orders")
	serves(t, map[string]string{"/": "orders", "/shop/": "orders", "/away/": ""},
		"--database", "shop="+pgdev.DSN(t), "--database", "away=host=127.0.0.1 port=1", "--schema", w.schema)
}

// An empty database gets tables and pages.
func TestDevSetsUp(t *testing.T) {
	t.Setenv("DATABASE_URL", pgdev.DSN(t))
	schema := pgdev.Schema(t)
	servesBy(t, "dev", map[string]string{"/": "No endpoint is installed"}, "--schema", schema)
}

// serves runs edda ui, checks that each page contains its text ("" is a page that is refused), and interrupts it.
func serves(t *testing.T, pages map[string]string, flags ...string) {
	t.Helper()
	servesBy(t, "ui", pages, flags...)
}

func servesBy(t *testing.T, command string, pages map[string]string, flags ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	out, in := io.Pipe()
	var complaints bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append([]string{command, "--listen", "127.0.0.1:0"}, flags...),
			streams{in: strings.NewReader(""), out: in, err: &complaints})
		_ = in.Close()
	}()
	said := make([]byte, 200)
	n, err := out.Read(said)
	if err != nil {
		t.Fatalf("it says nothing: %v, %s", err, complaints.String())
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	url := regexp.MustCompile(`http://127\.0\.0\.1:\d+/\?token=\w+`).FindString(string(said[:n]))
	jar, _ := cookiejar.New(nil)
	client := &http.Client{Jar: jar}
	get := func(address string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(got.Body)
		if err := errors.Join(err, got.Body.Close()); err != nil {
			t.Fatal(err)
		}
		return got.StatusCode, string(body)
	}
	if code, body := get(url); code != http.StatusOK {
		t.Fatalf("%s is %d: %s", url, code, body)
	}
	base, _, _ := strings.Cut(url, "/?")
	for path, want := range pages {
		code, body := get(base + path)
		if (code == http.StatusOK) != (want != "") || !strings.Contains(body, want) {
			t.Errorf("%s is %d, and does not say %q", path, code, want)
		}
	}
	cancel()
	if code := <-ended; code != exitDone {
		t.Errorf("interrupted it ends with %d: %s", code, complaints.String())
	}
}

func TestConnectionStringsHaveNames(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]string{
		"shop=postgres://db1/shop": "shop postgres://db1/shop", "a=host=db1 dbname=shop": "a host=db1 dbname=shop",
		"a=postgresql://u:p=w@db1/x?a=b": "a postgresql://u:p=w@db1/x?a=b", "postgres://db1/shop?a=b": "",
		"host=db1": "", "host=db1 dbname=shop": "", "host=/var/run/x=y dbname=shop": "", "": "",
	} {
		got := ""
		if parts := named.FindStringSubmatch(flag); parts != nil {
			got = parts[1] + " " + parts[2]
		}
		if got != want {
			t.Errorf("%q is %q, want %q", flag, got, want)
		}
	}
}

func TestUIRefusesToBeOpenToAll(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"ui", "--listen", "0.0.0.0:7433"}, {"ui", "--auth", "none"}, {"ui", "--listen", "7433"},
		{"ui", "--database", "postgres://127.0.0.1:1/other"},
		{"ui", "--database", "a=postgres://127.0.0.1:1/a"},
		{"ui", "--database", "a=postgres://127.0.0.1:1/a", "--database", "a=postgres://127.0.0.1:1/b"},
		{"ui", "--database", "a=postgres://127.0.0.1:1/a", "--database", "../b=postgres://127.0.0.1:1/b"},
	} {
		var complaints bytes.Buffer
		code := run(t.Context(), append(args, "--database", "postgres://127.0.0.1:1/none"),
			streams{in: strings.NewReader(""), out: io.Discard, err: &complaints})
		if code != exitUsage {
			t.Errorf("%s ends with %d: %s", args, code, complaints.String())
		}
	}
}

var inAShell = regexp.MustCompile(`In a shell: <code>edda ([^<]+)</code>`)

// The command at the foot of a page runs, and prints the data of the page as JSON.
func TestPagesPrintWhatTheirCommandsPrint(t *testing.T) {
	w := migrated(t)
	shop, err := story.Seed(t.Context(), w.pool, w.schema)
	if err != nil {
		t.Fatal(err)
	}
	if err := shop.Close(); err != nil { // so that nothing changes between the page and the command
		t.Fatal(err)
	}
	ui, err := eddaui.New(w.pool, eddaui.Options{Schema: w.schema,
		Authorize: func(*http.Request) (eddaui.Actor, error) {
			return eddaui.Actor{Permissions: eddaui.View | eddaui.Bodies}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ui.Close)
	get := func(path string) string {
		t.Helper()
		answer := httptest.NewRecorder()
		ui.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		if answer.Code != http.StatusOK {
			t.Fatalf("%s is %d: %s", path, answer.Code, answer.Body)
		}
		return answer.Body.String()
	}
	parsed := func(what, text string) (fields map[string]any) {
		t.Helper()
		if err := json.Unmarshal([]byte(text), &fields); err != nil {
			t.Fatalf("%s: %v\n%s", what, err, text)
		}
		return fields
	}
	all := map[string]bool{
		"/now": false, "/sagas": true, "/sagas/order": true, "/sagas/order/2026-0003": true, "/dead": true,
		"/sagas/order/2026-0012": true, "/dead/1": true, "/endpoints/payments": true, "/manifests": true,
		"/manifests/night%2Fsettle": true, "/limits": true, "/messages/" + shop.First.String(): true,
		"/conversations/" + shop.Labels.String(): true, "/border": false, "/map": true, "/audit": true,
		"/database": false,
	}
	for path, same := range all {
		found := inAShell.FindStringSubmatch(get(path))
		if found == nil {
			t.Errorf("%s names no command", path)
			continue
		}
		said := w.edda(append(strings.Fields(html.UnescapeString(found[1])), "--json")...)
		if said.code != exitDone {
			t.Errorf("%s: edda %s ends with %d: %s", path, found[1], said.code, said.err)
		}
		page := parsed(path, get(path+".json"))
		if path == "/map" || strings.HasPrefix(path, "/conversations/") {
			printed := w.want(exitDone, append(strings.Fields(html.UnescapeString(found[1])), "--mermaid")...).out
			if graph := get(path + "?as=mermaid"); graph != printed || !strings.HasPrefix(graph, "flowchart ") {
				t.Errorf("%s as Mermaid is\n%s\nand the command prints\n%s", path, graph, printed)
			}
			w.want(exitUsage, append(strings.Fields(html.UnescapeString(found[1])), "--mermaid", "--json")...)
		}
		for name, value := range parsed("edda "+found[1], said.out) {
			if same && !reflect.DeepEqual(page[name], value) {
				t.Errorf("%s: %s is\n%v\nand the command says\n%v", path, name, page[name], value)
			}
		}
	}
	t.Run("forms", func(t *testing.T) { formsNameCommands(t, w, slices.Sorted(maps.Keys(all))) })
}

var theSame = regexp.MustCompile(`Command: <code>edda ([^<]+)</code>`)

// words splits a command line like a shell.
func words(line string) (all []string) {
	word, quoted, begun := "", false, false
	for _, r := range line {
		switch {
		case r == '\'':
			quoted, begun = !quoted, true
		case r == ' ' && !quoted:
			if begun {
				all = append(all, word)
			}
			word, begun = "", false
		default:
			word, begun = word+string(r), true
		}
	}
	if begun {
		all = append(all, word)
	}
	return all
}

// The command that a form names exists in this program, with these flags and arguments.
func formsNameCommands(t *testing.T, w *world, pages []string) {
	w.exec("INSERT INTO edda.manifest_group (name, paused_at) VALUES ('reports', now()), ('bills', NULL)")
	w.exec("UPDATE edda.manifest SET group_id = (SELECT max(id) FROM edda.manifest_group)")
	w.exec(`INSERT INTO edda.lease (name, holder, epoch, acquired, renewed, expires)
		VALUES ('singleton/rates', 'a', 1, now(), now(), now() + interval '1 hour')`)
	w.exec("UPDATE edda.concurrency_limit SET declared = 2, operated = true")
	w.exec(`INSERT INTO edda.outbox (slot, endpoint, relayed, id, sent, kind, header, body)
		SELECT slot, 'shop.events', now(), gen_random_uuid(), now(), 'order.shipped', '{}', '{}'
		FROM edda.ring WHERE name = 'outbox'`)
	w.exec(`INSERT INTO edda.dead_letter_job (action, state, endpoint, kind, error_group, reason, last, ended, plan)
		VALUES ('retry', 'paused', '', '', 'none', '', 0, 1, '{1}')`)
	w.exec("UPDATE edda.saga SET key = E'it''s a key' WHERE key = '2026-0012'")
	ui, err := eddaui.New(w.pool, eddaui.Options{Schema: w.schema,
		Authorize: func(*http.Request) (eddaui.Actor, error) {
			return eddaui.Actor{Permissions: ^eddaui.Permission(0)}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ui.Close)
	commands := map[string]bool{}
	for _, path := range append(pages, "/jobs/1", "/border", "/endpoints/mails", "/sagas/order/2026-0013") {
		answer := httptest.NewRecorder()
		ui.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		for _, m := range theSame.FindAllStringSubmatch(answer.Body.String(), -1) {
			line := html.UnescapeString(m[1])
			c, rest, err := (&tool{}).root().Find(words(line))
			if err == nil && (c.HasSubCommands() || c.RunE == nil) {
				err = errors.New("it is no command")
			}
			if err == nil {
				err = c.ParseFlags(rest)
			}
			if err == nil && c.Args != nil {
				err = c.Args(c, c.Flags().Args())
			}
			if err != nil {
				t.Errorf("%s: edda %s: %v", path, line, err)
				continue
			}
			commands[c.CommandPath()] = true
		}
	}
	if len(commands) < 25 {
		t.Errorf("forms name only %d commands: %v", len(commands), slices.Sorted(maps.Keys(commands)))
	}
}
