package uihost_test

import (
	"bufio"
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/ui/host"
)

// Neither a password nor a token is in the log, right or wrong.
func TestSecretsStayOutOfTheLog(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(file, []byte("ann:s3cret-of-ann\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer // is read when the host has ended
	handler := slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})
	url, stop := startWith(t, uihost.Options{Auth: "basic:" + file}, handler)
	for _, word := range []string{"s3cret-of-ann", "wrong-s3cret"} {
		newPerson(t).get(url+"missing", func(r *http.Request) { r.SetBasicAuth("ann", word) })
	}
	stop()
	url, stop = startWith(t, uihost.Options{}, handler)
	base, token, _ := strings.Cut(url, "/?token=")
	eve := newPerson(t)
	eve.get(base+"/?token=wrong-s3cret", nil)
	eve.get(base+"/now", nil) // is refused, which is logged
	_, _, head := newPerson(t).get(url, nil)
	_, cookie, _ := strings.Cut(head.Get("Set-Cookie"), "=")
	session, _, _ := strings.Cut(cookie, ";")
	stop()
	if len(session) < 20 {
		t.Fatalf("the cookie is %q", head.Get("Set-Cookie"))
	}
	if !strings.Contains(log.String(), "refused") {
		t.Fatalf("the log tells nothing: %s", log.String())
	}
	for _, secret := range []string{"s3cret", token, session, "Basic "} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log has %q: %s", secret, log.String())
		}
	}
}

// A request that is too large, or never ends, costs only a connection for some seconds.
func TestLargeAndSlowRequestsAreRefused(t *testing.T) {
	t.Parallel()
	url, _ := start(t, uihost.Options{Auth: "header:X-User"})
	code, _, _ := newPerson(t).get(url, func(r *http.Request) {
		r.Header.Set("X-User", "ann")
		r.Header.Set("X-Large", strings.Repeat("x", 80<<10))
	})
	if code != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a header of 80 KiB is %d", code)
	}
	conn, err := net.Dial("tcp", strings.Trim(strings.TrimPrefix(url, "http://"), "/"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(pgdev.Patience(20 * time.Second))); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(bufio.NewReader(conn)) // until the server closes it
	if err != nil {
		t.Errorf("a request that does not end stays open: %v, %q", err, rest)
	}
}

// No page exists at paths that other programs often leave open.
func TestNothingElseIsServed(t *testing.T) {
	t.Parallel()
	url, _ := start(t, uihost.Options{Auth: "header:X-User"})
	ann := newPerson(t)
	named := func(r *http.Request) { r.Header.Set("X-User", "ann") }
	for _, path := range []string{
		"debug/pprof/", "debug/vars", "metrics", "static/", "static/../access.go", ".git/config", "html/now.html",
		"static/%2e%2e/access.go", "%2e%2e/%2e%2e/etc/passwd", ".env", "server-status",
	} {
		code, body, _ := ann.get(url+path, named)
		if code != http.StatusNotFound {
			t.Errorf("/%s is %d: %.200s", path, code, body)
		}
	}
}

// A supervisor has no name, and may find out that the process serves requests. Other paths need authentication.
func TestAProbeNeedsNoName(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(file, []byte("ann:s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, auth := range []string{"", "basic:" + file, "header:X-User"} {
		url, stop := start(t, uihost.Options{Auth: auth})
		base, _, _ := strings.Cut(url, "/?token=")
		base = strings.TrimSuffix(base, "/")
		kubelet := newPerson(t)
		code, body, _ := kubelet.get(base+"/health/live", nil)
		if code != http.StatusOK || body != "{\"live\":true}\n" {
			t.Errorf("--auth %q: the probe gets %d, %q", auth, code, body)
		}
		for _, path := range []string{"/health", "/health/live/", "/health/live/../../now", "/now"} {
			if code, body, _ := kubelet.get(base+path, nil); code < http.StatusBadRequest {
				t.Errorf("--auth %q: %s gives %d, %q to somebody without a name", auth, path, code, body)
			}
		}
		stop()
	}
}
